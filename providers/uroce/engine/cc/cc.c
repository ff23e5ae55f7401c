/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "cc.h"

#include "cwnd.h"

enum {
	/* Initial window with ECT, in packets. */
	ECT_PACKETS = 16,
	ALPHA_ONE = 1024,
	/* RFC 8257: g is 1/16. */
	ALPHA_WEIGHT = 16,
};

/* ---- host ---- */

static void local_start(struct eng_qp *qp)
{
	(void)qp;
}

static void local_acked(struct eng_qp *qp, uint64_t cost)
{
	struct requester *req = &qp->req;

	if (!cwnd_is_recovering(qp) && req->cwnd < req->cwnd_limit)
		req->cwnd += 1 + cost * CC_FULL_PACKET * 4 / req->cwnd;
}

static void local_lost(struct eng_qp *qp)
{
	struct requester *req = &qp->req;

	req->cwnd -= req->cwnd / 4;
	if (req->cwnd < CC_MIN_PACKETS * CC_FULL_PACKET)
		req->cwnd = CC_MIN_PACKETS * CC_FULL_PACKET;
}

/* ---- network ---- */

static void set_window(struct eng_qp *qp, uint64_t cwnd)
{
	struct requester *req = &qp->req;
	uint64_t least = CC_MIN_PACKETS * cc_packet_weight(qp);

	req->cwnd = cwnd < least ? least : cwnd;
}

static void network_start(struct eng_qp *qp)
{
	struct requester *req = &qp->req;

	req->cc = (struct cc_state){ .alpha = ALPHA_ONE, .slow_start = qp->ecn.cnp != NULL };
	if (req->retransmit.peer == PEER_RESPONDED)
		req->retransmit.peer = PEER_UNANSWERED;
	req->cc.window_psn = req->next_psn;
	if (qp->ecn.cnp)
		set_window(qp, ECT_PACKETS * cc_packet_weight(qp));
}

static void cut(struct eng_qp *qp, uint64_t cwnd)
{
	qp->req.cc.slow_start = false;
	set_window(qp, cwnd);
}

/*
 * Counts acknowledged bytes, and those whose ACK echoed a mark; once per window updates alpha by
 * their fraction.
 */
static void measure(struct requester *req, uint64_t cost)
{
	struct cc_state *cc = &req->cc;
	uint64_t part;

	cc->acked += cost;
	cc->marked += cc->ack_has_ece ? cost : 0;
	if (psn_diff(req->unacked_psn, cc->window_psn) < 0)
		return;
	part = cc->marked * ALPHA_ONE / cc->acked;
	cc->alpha = (uint16_t)(cc->alpha + ((int32_t)part - (int32_t)cc->alpha) / ALPHA_WEIGHT);
	cc->window_psn = req->end_psn;
	cc->acked = 0;
	cc->marked = 0;
}

static void network_acked(struct eng_qp *qp, uint64_t cost)
{
	struct requester *req = &qp->req;
	struct cc_state *cc = &req->cc;

	psn_follow(&req->repeated_psn, req->unacked_psn);
	if (cc->peer_echoes_ce)
		measure(req, cost);
	if (cc->ack_has_ece) {
		if (!cwnd_begins_recovery(qp))
			return;
		cut(qp, req->cwnd - req->cwnd * cc->alpha / (2 * ALPHA_ONE));
	} else if (!cwnd_is_recovering(qp) && req->cwnd < req->cwnd_limit) {
		set_window(qp,
			   req->cwnd + (cc->slow_start ? cost
						       : cost * cc_packet_weight(qp) / req->cwnd));
	}
}

static void network_lost(struct eng_qp *qp)
{
	cut(qp, qp->req.cwnd / 2);
}

static void network_congested(struct eng_qp *qp)
{
	cut(qp, qp->req.cwnd - qp->req.cwnd / 5);
}

const struct cc_ops cc_ops_table[ENG_CC_ALGOS] = {
	[ENG_CC_LOCAL] = { local_start, local_acked, local_lost, NULL, false },
	[ENG_CC_NETWORK] = { network_start, network_acked, network_lost, network_congested, true },
};
