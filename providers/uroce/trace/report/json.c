/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <jansson.h>

#include "engine/base/aeth.h"
#include "report.h"

static json_t *json_number(uint64_t value)
{
	return json_integer((json_int_t)value);
}

/* Returns null if the value is unknown. */
static json_t *json_optional(bool known, uint32_t value)
{
	return known ? json_number(value) : json_null();
}

static json_t *violations_json(const struct rule_hits hits[TRACE_RULE_COUNT])
{
	json_t *list = json_array();

	for (int rule = 0; rule < TRACE_RULE_COUNT; rule++) {
		json_t *row, *packets;

		if (hits[rule].count == 0)
			continue;
		row = json_object();
		packets = json_array();
		json_object_set_new(row, "rule", json_string(rule_rows[rule].number));
		json_object_set_new(row, "by", json_string(rule_by_name(rule_rows[rule].by)));
		json_object_set_new(row, "what", json_string(rule_rows[rule].text));
		json_object_set_new(row, "times", json_number(hits[rule].count));
		for (uint64_t i = 0; i < hits[rule].count && i < RULE_EXAMPLES; i++)
			json_array_append_new(packets, json_number(hits[rule].frames[i]));
		json_object_set_new(row, "packets", packets);
		json_array_append_new(list, row);
	}
	return list;
}

static json_t *round_trips_json(struct stream *stream)
{
	struct stream_round_trips trips = stream_round_trips(stream);
	json_t *object = json_object();

	json_object_set_new(object, "count", json_number(trips.count));
	json_object_set_new(object, "least_ns", json_number(trips.least));
	json_object_set_new(object, "median_ns", json_number(trips.median));
	json_object_set_new(object, "p99_ns", json_number(trips.p99));
	json_object_set_new(object, "most_ns", json_number(trips.most));
	return object;
}

static json_t *stream_json(struct stream *stream)
{
	json_t *object = json_object(), *counts = json_object();
	uint32_t ssn = stream_ssn(stream);
	bool limited = stream_limit(stream) >= 0;

	for (const struct stream_stat_row *row = stream_stat_rows; row->name; row++)
		json_object_set_new(counts, row->name,
				    json_number(stream_stat_value(&stream->counts, row)));
	json_object_set_new(object, "counts", counts);
	json_object_set_new(
		object, "first_psn",
		json_optional(stream->started, (uint32_t)stream->first & WIRE_24BIT_MASK));
	json_object_set_new(
		object, "next_psn",
		json_optional(stream->started, (uint32_t)stream->next & WIRE_24BIT_MASK));
	json_object_set_new(
		object, "unacknowledged_psn",
		json_optional(stream->started, (uint32_t)stream->unacked & WIRE_24BIT_MASK));
	json_object_set_new(object, "ssn", json_optional(ssn != UINT32_MAX, ssn));
	json_object_set_new(object, "msn", json_optional(stream->aeth_seen, stream->msn));
	json_object_set_new(object, "lsn", json_optional(limited, stream->lsn));
	json_object_set_new(object, "credits_reported",
			    stream->aeth_seen ? json_boolean(stream->credits_seen) : json_null());
	json_object_set_new(object, "credits_least",
			    stream->credits_seen ? json_number(credit_decode(stream->lowest))
						 : json_null());
	json_object_set_new(object, "credits_most",
			    stream->credits_seen ? json_number(credit_decode(stream->highest))
						 : json_null());
	json_object_set_new(object, "round_trips", round_trips_json(stream));
	json_object_set_new(object, "goodput_bytes_per_second", json_real(stream_goodput(stream)));
	json_object_set_new(object, "violations", violations_json(stream->rules));
	return object;
}

static json_t *endpoint_json(const uint8_t address[16], uint32_t qpn)
{
	char text[TRACE_ADDRESS_BYTES];
	json_t *object = json_object();

	json_object_set_new(object, "address", json_string(report_address(address, text)));
	json_object_set_new(object, "qpn", json_optional(qpn != 0, qpn));
	return object;
}

static json_t *connection_json(const struct trace *trace, struct trace_connection *connection)
{
	static const char *const names[] = { "a_to_b", "b_to_a" };
	const struct flow *flow = &trace->flows.items[connection->flows[0]];
	json_t *object = json_object();

	json_object_set_new(object, "service", json_string(report_service(flow->service)));
	json_object_set_new(object, "a", endpoint_json(flow->src, flow->src_qpn));
	json_object_set_new(object, "b", endpoint_json(flow->dst, flow->dst_qpn));
	json_object_set_new(object, "found_by", json_string(flow_pair_by_name(connection->by)));
	for (int i = 0; i < 2; i++) {
		const struct flow *way = connection->flows[i] == FLOW_NONE
						 ? NULL
						 : &trace->flows.items[connection->flows[i]];
		json_t *side = connection->is_reliable ? stream_json(&connection->streams[i])
						       : json_object();

		json_object_set_new(side, "packets", json_number(way ? way->packets : 0));
		json_object_set_new(side, "bytes", json_number(way ? way->bytes : 0));
		json_object_set_new(object, names[i], side);
	}
	return object;
}

static json_t *file_json(const char *path, const struct trace *trace)
{
	const struct trace_totals *totals = &trace->totals;
	const struct {
		const char *name;
		uint64_t value;
	} rows[] = {
		{ "frames", totals->frames },
		{ "packets", totals->roce },
		{ "other_frames", totals->verdicts[FRAME_OTHER] },
		{ "cut_frames", totals->verdicts[FRAME_CUT] },
		{ "broken_frames", totals->verdicts[FRAME_BROKEN] },
		{ "fragments", totals->verdicts[FRAME_FRAGMENT] },
		{ "malformed", totals->malformed },
		{ "bursts", totals->bursts },
		{ "cut_bursts", totals->cut_bursts },
		{ "icrc_unchecked", totals->unchecked },
		{ "copies", totals->copies },
		{ "refused", totals->refused },
		{ "management", totals->management },
		{ "congestion_marks", totals->congestion },
		{ "begin_ns", totals->begin_ns },
		{ "end_ns", totals->end_ns },
	};
	json_t *object = json_object(), *name = json_string(path);

	/* JSON cannot represent a name that is not UTF-8. */
	json_object_set_new(object, "file", name ? name : json_null());
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		json_object_set_new(object, rows[i].name, json_number(rows[i].value));
	return object;
}

int report_json(FILE *out, const char *path, struct trace *trace)
{
	json_t *root = file_json(path, trace), *list = json_array(), *messages = json_object();
	int result;

	for (int i = 0; i < MAD_ATTRS; i++)
		if (trace->cm.messages[i])
			json_object_set_new(messages, mad_attr_name((uint16_t)(MAD_ATTR_FIRST + i)),
					    json_number(trace->cm.messages[i]));
	json_object_set_new(root, "connection_manager", messages);
	json_object_set_new(root, "violations", violations_json(trace->sender_rules));
	for (size_t i = 0; i < trace->connections.count; i++)
		json_array_append_new(list, connection_json(trace, &trace->connections.items[i]));
	json_object_set_new(root, "connections", list);
	result = json_dumpf(root, out, JSON_INDENT(1));
	fputc('\n', out);
	json_decref(root);
	return result;
}
