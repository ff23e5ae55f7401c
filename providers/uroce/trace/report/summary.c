/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <arpa/inet.h>
#include <inttypes.h>
#include <string.h>

#include "engine/base/aeth.h"
#include "report.h"
#include "util/gid.h"

#define COLUMN 20

const char *report_address(const uint8_t address[16], char text[TRACE_ADDRESS_BYTES])
{
	if (gid_is_ipv4(address))
		inet_ntop(AF_INET, address + 12, text, TRACE_ADDRESS_BYTES);
	else
		inet_ntop(AF_INET6, address, text, TRACE_ADDRESS_BYTES);
	return text;
}

const char *report_service(uint8_t service)
{
	static const struct {
		uint8_t service;
		const char *name;
	} names[] = {
		{ WIRE_RC, "RC" }, { WIRE_UC, "UC" }, { WIRE_UD, "UD" }, { WIRE_XRC, "XRC" }
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].service == service)
			return names[i].name;
	return "CNP";
}

static void format_time(uint64_t ns, char text[32])
{
	if (ns >= 1000000000)
		snprintf(text, 32, "%.6f s", (double)ns / 1e9);
	else if (ns >= 1000000)
		snprintf(text, 32, "%.3f ms", (double)ns / 1e6);
	else
		snprintf(text, 32, "%.3f us", (double)ns / 1e3);
}

static void print_row(FILE *out, const char *label, const char *there, const char *back)
{
	fprintf(out, "  %-28s %*s %*s\n", label, COLUMN, there, COLUMN, back);
}

static void format_count(const struct stream *stream, const struct stream_stat_row *row,
			 char text[32])
{
	uint64_t value = stream_stat_value(&stream->counts, row);

	if (row->unit == STREAM_STAT_TIME)
		format_time(value, text);
	else
		snprintf(text, 32, "%" PRIu64, value);
}

/* Prints the counters, except those that are 0 in both directions. */
static void print_counts(FILE *out, const struct stream streams[2])
{
	char there[32], back[32];

	for (const struct stream_stat_row *row = stream_stat_rows; row->name; row++) {
		if (stream_stat_value(&streams[0].counts, row) == 0 &&
		    stream_stat_value(&streams[1].counts, row) == 0)
			continue;
		format_count(&streams[0], row, there);
		format_count(&streams[1], row, back);
		print_row(out, row->label, there, back);
	}
}

static void format_credits(const struct stream *stream, char text[32])
{
	if (!stream->aeth_seen)
		snprintf(text, 32, "-");
	else if (!stream->credits_seen)
		snprintf(text, 32, "not reported");
	else
		snprintf(text, 32, "%u to %u", credit_decode(stream->lowest),
			 credit_decode(stream->highest));
}

static void format_goodput(const struct stream *stream, char text[32])
{
	double rate = stream_goodput(stream);

	if (rate <= 0)
		snprintf(text, 32, "-");
	else
		snprintf(text, 32, "%.3f MB/s", rate / 1e6);
}

static void format_sequence(uint32_t number, char text[32])
{
	if (number == UINT32_MAX)
		snprintf(text, 32, "-");
	else
		snprintf(text, 32, "%u", number);
}

static void print_sequences(FILE *out, const struct stream streams[2])
{
	char text[2][32];

	for (int i = 0; i < 2; i++)
		snprintf(text[i], 32, streams[i].started ? "%u" : "-",
			 (uint32_t)streams[i].first & WIRE_24BIT_MASK);
	print_row(out, "first PSN", text[0], text[1]);
	for (int i = 0; i < 2; i++)
		snprintf(text[i], 32, streams[i].started ? "%u" : "-",
			 (uint32_t)streams[i].next & WIRE_24BIT_MASK);
	print_row(out, "next PSN, at the end", text[0], text[1]);
	for (int i = 0; i < 2; i++)
		format_sequence(stream_ssn(&streams[i]), text[i]);
	print_row(out, "SSN, at the end", text[0], text[1]);
	for (int i = 0; i < 2; i++)
		format_sequence(streams[i].aeth_seen ? streams[i].msn : UINT32_MAX, text[i]);
	print_row(out, "MSN, at the end", text[0], text[1]);
	for (int i = 0; i < 2; i++)
		format_sequence(stream_limit(&streams[i]) >= 0 ? streams[i].lsn : UINT32_MAX,
				text[i]);
	print_row(out, "LSN, at the end", text[0], text[1]);
	for (int i = 0; i < 2; i++)
		format_credits(&streams[i], text[i]);
	print_row(out, "credits advertised", text[0], text[1]);
}

static void print_round_trips(FILE *out, struct stream streams[2])
{
	struct stream_round_trips trips[2] = { stream_round_trips(&streams[0]),
					       stream_round_trips(&streams[1]) };
	static const struct {
		const char *label;
		size_t offset;
	} rows[] = {
		{ "round trip, shortest", offsetof(struct stream_round_trips, least) },
		{ "  median", offsetof(struct stream_round_trips, median) },
		{ "  99 of 100 are within", offsetof(struct stream_round_trips, p99) },
		{ "  longest", offsetof(struct stream_round_trips, most) },
	};
	char text[2][32];

	if (trips[0].count == 0 && trips[1].count == 0)
		return;
	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		for (int i = 0; i < 2; i++)
			if (trips[i].count)
				format_time(*(uint64_t *)((char *)&trips[i] + rows[row].offset),
					    text[i]);
			else
				snprintf(text[i], 32, "-");
		print_row(out, rows[row].label, text[0], text[1]);
	}
}

static void print_violations(FILE *out, const struct rule_hits rules[TRACE_RULE_COUNT],
			     const char *where)
{
	for (int rule = 0; rule < TRACE_RULE_COUNT; rule++) {
		const struct rule_hits *hits = &rules[rule];

		if (hits->count == 0)
			continue;
		fprintf(out, "  rule %s, %s%s: %s: %" PRIu64 " times, packet",
			rule_rows[rule].number, rule_by_name(rule_rows[rule].by), where,
			rule_rows[rule].text, hits->count);
		for (uint64_t i = 0; i < hits->count && i < RULE_EXAMPLES; i++)
			fprintf(out, " %u", hits->frames[i]);
		fprintf(out, "%s\n", hits->count > RULE_EXAMPLES ? " ..." : "");
	}
}

static void format_qpn(uint32_t qpn, char text[32])
{
	if (qpn)
		snprintf(text, 32, "QP 0x%06x", qpn);
	else
		snprintf(text, 32, "QP unknown");
}

static void print_connection(FILE *out, const struct trace *trace,
			     struct trace_connection *connection, size_t number)
{
	const struct flow *flow = &trace->flows.items[connection->flows[0]];
	char from[TRACE_ADDRESS_BYTES], to[TRACE_ADDRESS_BYTES], src[32], dst[32];

	format_qpn(flow->src_qpn, src);
	format_qpn(flow->dst_qpn, dst);
	fprintf(out, "\nconnection %zu  %s  a = %s %s  b = %s %s  (found by: %s)\n", number,
		report_service(flow->service), report_address(flow->src, from), src,
		report_address(flow->dst, to), dst, flow_pair_by_name(connection->by));
	if (!connection->is_reliable) {
		const struct flow *back = connection->flows[1] == FLOW_NONE
						  ? NULL
						  : &trace->flows.items[connection->flows[1]];

		fprintf(out, "  a to b: %" PRIu64 " packets, %" PRIu64 " payload bytes",
			flow->packets, flow->bytes);
		if (back)
			fprintf(out, "; b to a: %" PRIu64 " packets, %" PRIu64 " payload bytes",
				back->packets, back->bytes);
		fputc('\n', out);
		return;
	}
	print_row(out, "", "a asks b", "b asks a");
	print_counts(out, connection->streams);
	print_sequences(out, connection->streams);
	print_round_trips(out, connection->streams);
	format_goodput(&connection->streams[0], src);
	format_goodput(&connection->streams[1], dst);
	print_row(out, "goodput", src, dst);
	print_violations(out, connection->streams[0].rules, " when a asks b");
	print_violations(out, connection->streams[1].rules, " when b asks a");
}

static void print_remark(FILE *out, uint64_t count, const char *text)
{
	if (count)
		fprintf(out, "  %" PRIu64 " %s\n", count, text);
}

static void print_file(FILE *out, const char *path, const struct trace *trace)
{
	const struct trace_totals *totals = &trace->totals;

	fprintf(out, "%s: %" PRIu64 " frames, %" PRIu64 " packets of RoCEv2, %.6f s\n", path,
		totals->frames, totals->roce,
		totals->frames ? (double)(totals->end_ns - totals->begin_ns) / 1e9 : 0.0);
	print_remark(out, totals->verdicts[FRAME_OTHER], "frames are of something else");
	print_remark(out, totals->verdicts[FRAME_CUT], "frames were captured without their BTH");
	print_remark(out, totals->verdicts[FRAME_BROKEN],
		     "frames have lengths that contradict each other");
	print_remark(out, totals->verdicts[FRAME_FRAGMENT],
		     "frames are IP fragments, which RoCEv2 has not");
	print_remark(out, totals->cut_bursts,
		     "bursts of packets are cut by the snap length: their packets are "
		     "missing here; capture with a larger one");
	print_remark(out, totals->unchecked,
		     "packets were not captured whole, so that their ICRC was not "
		     "checked");
	print_remark(out, totals->copies, "packets are second copies of others, and left out");
	print_remark(out, totals->refused,
		     "packets were refused by their process, and are left out");
	print_remark(out, totals->congestion, "packets carry FECN or BECN");
	print_remark(out, trace->flows.refused,
		     "packets are of too many queue pairs, and left out");
	if (totals->malformed)
		fprintf(out,
			"  %" PRIu64 " datagrams to port %d are none of RoCEv2; packet %u: %s\n",
			totals->malformed, WIRE_UDP_PORT, totals->first_malformed,
			wire_error_name(totals->why));
	if (totals->management == 0)
		return;
	fprintf(out, "  connection manager:");
	for (int i = 0; i < MAD_ATTRS; i++)
		if (trace->cm.messages[i])
			fprintf(out, " %s %u", mad_attr_name((uint16_t)(MAD_ATTR_FIRST + i)),
				trace->cm.messages[i]);
	fprintf(out, "%s\n", trace->cm.malformed ? ", others malformed or cut" : "");
	for (size_t i = 0; i < trace->cm.count; i++)
		if (trace->cm.items[i].rejected)
			fprintf(out, "  REJ %u (%s)\n", trace->cm.items[i].reject_reason,
				mad_reject_name(trace->cm.items[i].reject_reason));
}

void report_summary(FILE *out, const char *path, struct trace *trace)
{
	print_file(out, path, trace);
	print_violations(out, trace->sender_rules, "");
	for (size_t i = 0; i < trace->connections.count; i++)
		print_connection(out, trace, &trace->connections.items[i], i + 1);
}
