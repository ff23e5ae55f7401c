/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Builds connections from flows and passes each packet to the stream of its connection. */
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "trace.h"
#include "engine/base/psn.h"

static const struct cm_connection *find_cm(const struct trace *trace, const struct flow *flow)
{
	for (size_t i = 0; i < trace->cm.count; i++) {
		const struct cm_connection *cm = &trace->cm.items[i];
		bool forward = memcmp(flow->src, cm->active.address, 16) == 0 &&
			       flow->dst_qpn == cm->passive.qpn && flow->src_qpn == cm->active.qpn;
		bool backward = memcmp(flow->src, cm->passive.address, 16) == 0 &&
				flow->dst_qpn == cm->active.qpn && flow->src_qpn == cm->passive.qpn;

		if (cm->accepted && (forward || backward))
			return cm;
	}
	return NULL;
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static struct stream_params get_params(const struct trace *trace,
				       const struct trace_connection *connection, int side,
				       const struct trace_options *options)
{
	const struct cm_connection *cm = connection->cm;
	struct stream_params params = { .read_depth = UINT32_MAX,
					.keep_events = options->keep_events };

	for (int i = 0; i < 2 && params.mtu == 0; i++)
		if (connection->flows[i] != FLOW_NONE)
			params.mtu = trace->flows.items[connection->flows[i]].mtu;
	if (cm && connection->flows[side] != FLOW_NONE) {
		const struct flow *flow = &trace->flows.items[connection->flows[side]];
		bool active = flow->dst_qpn == cm->passive.qpn;
		const struct cm_side *self = active ? &cm->active : &cm->passive;
		const struct cm_side *peer = active ? &cm->passive : &cm->active;

		if (params.mtu == 0)
			params.mtu = cm->mtu;
		params.start_is_known = true;
		params.start = peer->psn;
		/* The limit is the number of READs and Atomics that both ends support. */
		params.read_depth = min_u32(self->initiator_depth, peer->responder_resources);
	}
	return params;
}

/* Checks the rules that apply to any packet (S14, S15). */
static void check_sender_rules(struct trace *trace)
{
	for (size_t i = 0; i < trace->packets.count; i++) {
		const struct trace_packet *packet = &trace->packets.items[i];

		if (packet->flags & (TRACE_DUPLICATE | TRACE_REFUSED))
			continue;
		if (packet->flags & TRACE_WRONG_ICRC) {
			rule_hit(&trace->sender_rules[RULE_ICRC], packet->frame);
			continue;
		}
		if (!(packet->flags & TRACE_MIGRATED))
			rule_hit(&trace->sender_rules[RULE_MIGREQ], packet->frame);
		if (packet->flags & TRACE_OTHER_PKEY)
			rule_hit(&trace->sender_rules[RULE_PKEY], packet->frame);
	}
}

/* Counts the packets of each flow again, without duplicates. */
static void count_packets(struct trace *trace)
{
	for (size_t i = 0; i < trace->flows.count; i++)
		trace->flows.items[i].packets = trace->flows.items[i].bytes = 0;
	for (size_t i = 0; i < trace->packets.count; i++) {
		const struct trace_packet *packet = &trace->packets.items[i];

		if (packet->flow == FLOW_NONE || packet->flags & TRACE_IGNORED)
			continue;
		trace->flows.items[packet->flow].packets++;
		trace->flows.items[packet->flow].bytes += packet->payload;
	}
}

static bool is_selected(const struct flow *flow, const struct trace_options *options)
{
	return options->qpn == UINT32_MAX || flow->dst_qpn == options->qpn ||
	       flow->src_qpn == options->qpn;
}

/* Connection and side to which the packets of a flow belong. */
struct flow_role {
	uint32_t connection;
	int side;
};

static struct flow_role *create_connections(struct trace *trace, const enum flow_pair_by *by,
					    const struct trace_options *options)
{
	struct flow_role *roles = calloc(trace->flows.count + 1, sizeof(*roles));

	if (!roles) {
		fprintf(stderr, "uroce-trace: out of memory\n");
		exit(1);
	}
	for (uint32_t i = 0; i < trace->flows.count; i++) {
		const struct flow *flow = &trace->flows.items[i];
		struct trace_connection *connection;

		roles[i].connection = UINT32_MAX;
		if (!is_selected(flow, options))
			continue;
		/* The connection was created with the peer flow, whose packets came first. */
		if (flow->peer != FLOW_NONE && flow->peer < i) {
			roles[i].connection = roles[flow->peer].connection;
			roles[i].side = 1;
			continue;
		}
		roles[i].connection = (uint32_t)trace->connections.count;
		connection = array_append(&trace->connections);
		memset(connection, 0, sizeof(*connection));
		connection->flows[0] = i;
		connection->flows[1] = flow->peer;
		connection->by = by[i];
		connection->is_reliable = flow->service == WIRE_RC || flow->service == WIRE_XRC;
		connection->cm = find_cm(trace, flow);
	}
	return roles;
}

static void start_streams(struct trace *trace, const struct trace_options *options)
{
	for (size_t i = 0; i < trace->connections.count; i++) {
		struct trace_connection *connection = &trace->connections.items[i];

		for (int side = 0; side < 2 && connection->is_reliable; side++) {
			struct stream_params params = get_params(trace, connection, side, options);

			stream_init(&connection->streams[side], &params);
		}
	}
}

static int compare_packets(const void *a, const void *b)
{
	const struct trace_packet *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	if (x->frame != y->frame)
		return x->frame < y->frame ? -1 : 1;
	return x->part < y->part ? -1 : x->part > y->part;
}

static void process_packet(struct trace *trace, const struct flow_role *roles,
			   const struct trace_packet *packet)
{
	const struct flow_role *role;
	struct trace_connection *connection;

	if (packet->flow == FLOW_NONE || packet->flags & TRACE_IGNORED)
		return;
	role = &roles[packet->flow];
	if (role->connection == UINT32_MAX)
		return;
	connection = &trace->connections.items[role->connection];
	if (!connection->is_reliable)
		return;
	if (wire_op_is_response(packet->opcode))
		stream_response(&connection->streams[1 - role->side], packet);
	else if (wire_op_is_request(packet->opcode))
		stream_request(&connection->streams[role->side], packet);
}

void trace_analyze(struct trace *trace, const struct trace_options *options)
{
	enum flow_pair_by *by = calloc(trace->flows.count + 1, sizeof(*by));
	struct flow_role *roles;

	if (!by) {
		fprintf(stderr, "uroce-trace: out of memory\n");
		exit(1);
	}
	if (trace->totals.backwards && trace->packets.count > 0)
		qsort(trace->packets.items, trace->packets.count, sizeof(*trace->packets.items),
		      compare_packets);
	trace->totals.copies = dedup_mark(&trace->packets);
	check_sender_rules(trace);
	count_packets(trace);
	flow_pair_find(&trace->flows, &trace->cm, by);
	roles = create_connections(trace, by, options);
	start_streams(trace, options);
	for (size_t i = 0; i < trace->packets.count; i++)
		process_packet(trace, roles, &trace->packets.items[i]);
	for (size_t i = 0; i < trace->connections.count; i++)
		for (int side = 0; side < 2 && trace->connections.items[i].is_reliable; side++)
			stream_finish(&trace->connections.items[i].streams[side]);
	free(roles);
	free(by);
}
