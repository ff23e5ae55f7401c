/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "flow_pair.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/psn.h"

#define PORT_BASE 0xc000u
/*
 * Number of PSNs by which a response may precede its request in a file that was merged from
 * captures with different clocks.
 */
#define RESPONSE_AHEAD_MAX 256

enum pair_score {
	SCORE_IMPOSSIBLE = -1,
	SCORE_PORT = 1,	     /* the same source port */
	SCORE_PORT_HASH = 4, /* additionally: the port is derived from both QP numbers */
	SCORE_PSN = 8,	     /* for each direction whose responses match the requests */
	SCORE_ENOUGH = SCORE_PORT_HASH,
};

const char *flow_pair_by_name(enum flow_pair_by by)
{
	static const char *const names[] = {
		[FLOW_PAIR_NONE] = "one direction only",
		[FLOW_PAIR_CM] = "REQ and REP",
		[FLOW_PAIR_PSN] = "PSNs",
		[FLOW_PAIR_PORT] = "source port",
	};

	return names[by];
}

/*
 * Returns the source port that rxe and uroce derive from the QP numbers, for connections set up
 * without the CM.
 */
static uint16_t hashed_src_port(uint32_t one, uint32_t other)
{
	uint64_t value = (uint64_t)one * other;
	uint32_t label;

	value ^= value >> 20;
	value ^= value >> 40;
	label = value & 0xfffff;
	return (uint16_t)(PORT_BASE | ((label & 0x3fff) ^ label >> 14));
}

/*
 * Returns SCORE_PSN if the responses of one flow match the requests of another, SCORE_IMPOSSIBLE if
 * they do not, 0 if either are missing.  The first response may be for a request before the
 * capture, or carry initial credits (rule C9), and the last one may be one of many for a READ, so
 * the ranges of PSNs need only overlap.
 */
static int score_psns(const struct flow *requester, const struct flow *responder)
{
	const struct flow_range *requests = &requester->requests,
				*responses = &responder->responses;
	int32_t length = psn_diff(requests->last, requests->first);

	if (responses->packets == 0 || requests->packets == 0)
		return 0;
	if (psn_diff(responses->last, requests->first) < -1 ||
	    psn_diff(responses->first, requests->first) > length + RESPONSE_AHEAD_MAX)
		return SCORE_IMPOSSIBLE;
	return SCORE_PSN;
}

static int score_pair(const struct flow *a, const struct flow *b)
{
	int forward = score_psns(a, b), backward = score_psns(b, a);
	int sum;

	if (a->service != b->service || a->service == WIRE_UD || forward < 0 || backward < 0)
		return SCORE_IMPOSSIBLE;
	/* One ended before the other began: different connections. */
	if ((a->closed && a->end < b->begin) || (b->closed && b->end < a->begin))
		return SCORE_IMPOSSIBLE;
	sum = forward + backward;
	if (a->src_port == b->src_port) {
		sum += SCORE_PORT;
		if (a->src_port == hashed_src_port(a->dst_qpn, b->dst_qpn))
			sum += SCORE_PORT_HASH;
	}
	return sum;
}

static void pair_flows(struct flows *flows, uint32_t a, uint32_t b, enum flow_pair_by how,
		       enum flow_pair_by *by)
{
	flows->items[a].peer = b;
	flows->items[b].peer = a;
	flows->items[a].src_qpn = flows->items[b].dst_qpn;
	flows->items[b].src_qpn = flows->items[a].dst_qpn;
	by[a] = by[b] = how;
}

static bool is_opposite(const struct flow *a, const struct flow *b)
{
	return memcmp(a->src, b->dst, 16) == 0 && memcmp(a->dst, b->src, 16) == 0;
}

/*
 * Returns the oldest unpaired flow from src to a QP at dst, or FLOW_NONE: connections are paired in
 * the order of their REQs, so later ones get the later flows of a reused QP number.
 */
static uint32_t find_unpaired(const struct flows *flows, const uint8_t src[16],
			      const uint8_t dst[16], uint32_t qpn)
{
	for (uint32_t i = 0; i < flows->count; i++) {
		const struct flow *flow = &flows->items[i];

		if (flow->peer == FLOW_NONE && flow->dst_qpn == qpn && flow->service != WIRE_UD &&
		    memcmp(flow->src, src, 16) == 0 && memcmp(flow->dst, dst, 16) == 0)
			return i;
	}
	return FLOW_NONE;
}

static void pair_by_cm(struct flows *flows, const struct cm_log *log, enum flow_pair_by *by)
{
	size_t count = log->count < FLOWS_MAX ? log->count : FLOWS_MAX;

	for (size_t i = 0; i < count; i++) {
		const struct cm_side *active = &log->items[i].active;
		const struct cm_side *passive = &log->items[i].passive;
		uint32_t forward, backward;

		if (!log->items[i].accepted)
			continue;
		forward = find_unpaired(flows, active->address, passive->address, passive->qpn);
		backward = find_unpaired(flows, passive->address, active->address, active->qpn);
		if (forward != FLOW_NONE)
			flows->items[forward].src_qpn = active->qpn;
		if (backward != FLOW_NONE)
			flows->items[backward].src_qpn = passive->qpn;
		/* A QP connected to itself has one flow for both directions. */
		if (forward != FLOW_NONE && backward != FLOW_NONE && forward != backward)
			pair_flows(flows, forward, backward, FLOW_PAIR_CM, by);
	}
}

/*
 * Returns the unpaired flow with the highest score as the opposite direction, or FLOW_NONE if none
 * has SCORE_ENOUGH.
 */
static uint32_t find_best_peer(const struct flows *flows, uint32_t of, int *best_score)
{
	const struct flow *flow = &flows->items[of];
	uint32_t found = FLOW_NONE;

	*best_score = SCORE_ENOUGH - 1;
	for (uint32_t i = 0; i < flows->count; i++) {
		const struct flow *other = &flows->items[i];
		int sum;

		if (i == of || other->peer != FLOW_NONE || !is_opposite(flow, other))
			continue;
		/*
		 * If CM messages give the sending QP of a flow, only a flow to that QP can be the
		 * peer.
		 */
		if ((flow->src_qpn && flow->src_qpn != other->dst_qpn) ||
		    (other->src_qpn && other->src_qpn != flow->dst_qpn))
			continue;
		sum = score_pair(flow, other);
		if (sum > *best_score) {
			*best_score = sum;
			found = i;
		}
	}
	return found;
}

void flow_pair_find(struct flows *flows, const struct cm_log *log, enum flow_pair_by *by)
{
	for (size_t i = 0; i < flows->count; i++)
		by[i] = FLOW_PAIR_NONE;
	pair_by_cm(flows, log, by);
	for (uint32_t i = 0; i < flows->count; i++) {
		int ours, theirs;
		uint32_t other;

		if (flows->items[i].peer != FLOW_NONE || flows->items[i].service == WIRE_UD)
			continue;
		other = find_best_peer(flows, i, &ours);
		/* Each must be the best match of the other. */
		if (other != FLOW_NONE && find_best_peer(flows, other, &theirs) == i)
			pair_flows(flows, i, other,
				   ours >= SCORE_PSN ? FLOW_PAIR_PSN : FLOW_PAIR_PORT, by);
	}
	/* If two addresses have only one candidate, SCORE_PORT suffices. */
	for (uint32_t i = 0; i < flows->count; i++) {
		uint32_t candidates = 0, other = FLOW_NONE;
		const struct flow *flow = &flows->items[i];

		for (uint32_t j = 0; j < flows->count && flow->peer == FLOW_NONE; j++) {
			if (i == j || flows->items[j].peer != FLOW_NONE ||
			    !is_opposite(flow, &flows->items[j]) ||
			    score_pair(flow, &flows->items[j]) < SCORE_PORT)
				continue;
			candidates++;
			other = j;
		}
		if (candidates == 1)
			pair_flows(flows, i, other, FLOW_PAIR_PORT, by);
	}
}
