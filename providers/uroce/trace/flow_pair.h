/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Finds the pairs of flows that are the two directions of a connection: by the QP numbers in REQ
 * and REP, which is exact, or by similarity: the PSNs of one flow's responses match those of the
 * other's requests, or both flows have the same UDP source port, as with rxe and uroce, perhaps one
 * derived from the two QP numbers.
 */
#ifndef UROCE_TRACE_FLOW_PAIR_H
#define UROCE_TRACE_FLOW_PAIR_H

#include "cm_log.h"
#include "flow.h"

/* How the peer of a flow was found. */
enum flow_pair_by {
	FLOW_PAIR_NONE, /* one direction only */
	FLOW_PAIR_CM,
	FLOW_PAIR_PSN,
	FLOW_PAIR_PORT,
};
const char *flow_pair_by_name(enum flow_pair_by by);

/*
 * Sets peer and, where known, src_qpn of all flows, and by[i], of flows->count elements, to how the
 * peer of flow i was found.
 */
void flow_pair_find(struct flows *flows, const struct cm_log *log, enum flow_pair_by *by);

#endif
