/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <inttypes.h>

#include "engine/base/aeth.h"
#include "report.h"
#include "wire/packet.h"

static void print_number(FILE *out, uint32_t value)
{
	if (value == UINT32_MAX)
		fputc(',', out);
	else
		fprintf(out, ",%" PRIu32, value);
}

static void print_event(FILE *out, const struct trace *trace, size_t connection, int side,
			const struct stream_event *event)
{
	uint64_t since = event->time_ns - trace->totals.begin_ns;

	fprintf(out, "%" PRIu64 ".%09" PRIu64 ",%" PRIu32 ",%u,%zu,%c,%s,%s", since / 1000000000,
		since % 1000000000, event->frame, event->part, connection, side ? 'b' : 'a',
		stream_event_name((enum stream_event_kind)event->kind),
		event->kind == STREAM_VIOLATION ? rule_rows[event->rule].number : "");
	fprintf(out, ",%u,%u,%u", (uint32_t)event->position & WIRE_24BIT_MASK,
		(uint32_t)event->next & WIRE_24BIT_MASK,
		(uint32_t)event->unacked & WIRE_24BIT_MASK);
	print_number(out, event->ssn);
	print_number(out, event->msn);
	print_number(out, event->lsn);
	if (event->credits < CREDIT_CODE_UNLIMITED)
		print_number(out, credit_decode(event->credits));
	else
		fputc(',', out);
	fprintf(out, ",%" PRIu32 "\n", event->reads);
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
				print_event(out, trace, i + 1, side,
					    &connection->streams[side].events.items[j]);
	}
}
