/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <inttypes.h>

#include "engine/base/aeth.h"
#include "report.h"
#include "wire/packet.h"

static void number(FILE *out, uint32_t value)
{
	if (value == UINT32_MAX)
		fputc(',', out);
	else
		fprintf(out, ",%" PRIu32, value);
}

static void event(FILE *out, const struct trace *trace, size_t connection, int side,
		  const struct stream_event *it)
{
	uint64_t since = it->time_ns - trace->totals.begin_ns;

	fprintf(out, "%" PRIu64 ".%09" PRIu64 ",%" PRIu32 ",%u,%zu,%c,%s,%s", since / 1000000000,
		since % 1000000000, it->frame, it->part, connection, side ? 'b' : 'a',
		stream_event_name((enum stream_event_kind)it->kind),
		it->kind == STREAM_VIOLATION ? rule_rows[it->rule].number : "");
	fprintf(out, ",%u,%u,%u", (uint32_t)it->position & WIRE_24BIT_MASK,
		(uint32_t)it->next & WIRE_24BIT_MASK, (uint32_t)it->unacked & WIRE_24BIT_MASK);
	number(out, it->ssn);
	number(out, it->msn);
	number(out, it->lsn);
	if (it->credits < CREDIT_CODE_UNLIMITED)
		number(out, credit_decode(it->credits));
	else
		fputc(',', out);
	fprintf(out, ",%" PRIu32 "\n", it->reads);
}

void report_timeline(FILE *out, const struct trace *trace)
{
	fputs("time,packet,part,connection,requester,event,rule,psn,next_psn,unacked_psn,ssn,msn,"
	      "lsn,credits,reads\n",
	      out);
	for (size_t i = 0; i < trace->connections.count; i++) {
		const struct trace_connection *connection = &trace->connections.items[i];

		for (int side = 0; side < 2 && connection->is_reliable; side++)
			for (size_t j = 0; j < connection->streams[side].events.count; j++)
				event(out, trace, i + 1, side,
				      &connection->streams[side].events.items[j]);
	}
}
