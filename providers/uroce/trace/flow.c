/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "flow.h"

#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "engine/base/psn.h"

#define BUCKETS (2 * FLOWS_MAX) /* a power of two */
/*
 * A larger change of the PSN means another QP with the same number.  A READ of 2 GB at MTU 1024, or
 * as many packets missing in the capture, is less likely than a second run of a test.
 */
#define NEW_CONNECTION_PSNS (1 << 21)

static uint32_t hash_key(const uint8_t src[16], const uint8_t dst[16], uint32_t qpn)
{
	uint32_t hash = qpn * 0x9e3779b1u;

	for (int i = 0; i < 16; i++) {
		hash = (hash ^ src[i]) * 0x01000193u;
		hash = (hash ^ dst[i]) * 0x01000193u;
	}
	return hash ^ hash >> 15;
}

/*
 * Returns the bucket of the latest flow with these addresses, QP and service, or a free bucket for
 * it.
 */
static uint32_t *find_bucket(struct flows *flows, const uint8_t src[16], const uint8_t dst[16],
			     uint32_t qpn, uint8_t service)
{
	uint32_t at = hash_key(src, dst, qpn);

	for (;; at++) {
		uint32_t *bucket = &flows->buckets[at % BUCKETS];
		const struct flow *flow;

		if (*bucket == 0)
			return bucket;
		flow = &flows->items[*bucket - 1];
		if (flow->dst_qpn == qpn && flow->service == service &&
		    memcmp(flow->src, src, 16) == 0 && memcmp(flow->dst, dst, 16) == 0)
			return bucket;
	}
}

static bool is_new_connection(const struct flow_range *range, uint32_t psn)
{
	int32_t change = psn_diff(psn, range->last);

	return range->packets > 0 &&
	       (change > NEW_CONNECTION_PSNS || change < -NEW_CONNECTION_PSNS);
}

static struct flow *new_flow(struct flows *flows, uint32_t *bucket, const struct wire_path *path,
			     const struct wire_packet *packet)
{
	struct flow *flow;

	if (flows->count == FLOWS_MAX)
		return NULL;
	flow = array_append(flows);
	memset(flow, 0, sizeof(*flow));
	memcpy(flow->src, path->src, 16);
	memcpy(flow->dst, path->dst, 16);
	flow->dst_qpn = packet->dest_qpn;
	flow->service = packet->opcode & WIRE_SERVICE_MASK;
	flow->src_port = path->src_port;
	flow->peer = FLOW_NONE;
	*bucket = (uint32_t)flows->count;
	return flow;
}

static void extend_range(struct flow_range *range, uint32_t psn, uint64_t time_ns)
{
	if (range->packets++ == 0) {
		range->first = range->last = psn;
		range->begin = time_ns;
	} else if (psn_diff(psn, range->last) > 0) {
		range->last = psn;
	} else if (psn_diff(psn, range->first) < 0) {
		range->first = psn;
	}
}

uint32_t flows_add(struct flows *flows, const struct wire_path *path,
		   const struct wire_packet *packet, uint64_t time_ns)
{
	bool response = wire_op_is_response(packet->opcode);
	enum wire_position position = wire_op_position(packet->opcode);
	struct flow_range *range;
	struct flow *flow;
	uint32_t *bucket;

	if (!flows->buckets)
		flows->buckets = calloc(BUCKETS, sizeof(*flows->buckets));
	if (!flows->buckets)
		return FLOW_NONE;
	bucket = find_bucket(flows, path->src, path->dst, packet->dest_qpn,
			     packet->opcode & WIRE_SERVICE_MASK);
	flow = *bucket ? &flows->items[*bucket - 1] : NULL;
	range = !flow ? NULL : response ? &flow->responses : &flow->requests;
	if (!flow || flow->closed ||
	    (flow->service != WIRE_UD && is_new_connection(range, packet->psn)))
		flow = new_flow(flows, bucket, path, packet);
	if (!flow) {
		flows->refused++;
		return FLOW_NONE;
	}
	extend_range(response ? &flow->responses : &flow->requests, packet->psn, time_ns);
	if (flow->packets++ == 0)
		flow->begin = time_ns;
	flow->end = time_ns;
	flow->bytes += packet->payload_length;
	if (flow->mtu == 0 && position & (WIRE_FIRST | WIRE_MIDDLE))
		flow->mtu = packet->payload_length;
	if (flow->service == WIRE_UD)
		flow->src_qpn = packet->src_qpn;
	return (uint32_t)(flow - flows->items);
}

void flows_end_qp(struct flows *flows, const uint8_t src[16], const uint8_t dst[16],
		  uint32_t dst_qpn)
{
	static const uint8_t connected[] = { WIRE_RC, WIRE_UC, WIRE_XRC };

	if (!flows->buckets)
		return;
	for (size_t i = 0; i < sizeof(connected); i++) {
		uint32_t *bucket = find_bucket(flows, src, dst, dst_qpn, connected[i]);
		struct flow *flow = *bucket ? &flows->items[*bucket - 1] : NULL;

		if (flow)
			flow->closed = true;
	}
}

void flows_free(struct flows *flows)
{
	free(flows->items);
	free(flows->buckets);
}
