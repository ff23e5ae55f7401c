/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "law.h"

#include "cwnd.h"

enum {
	/* Packets that a window of ECT begins with. */
	ECT_PACKETS = 16,
	ALPHA_ONE = 1024,
	/* RFC 8257: g is 1/16. */
	ALPHA_WEIGHT = 16,
};

/* ---- host ---- */

static void host_start(struct eng_qp *qp)
{
	(void)qp;
}

static void host_acked(struct eng_qp *qp, uint64_t cost)
{
	struct requester *req = &qp->req;

	if (!cwnd_is_recovering(qp) && req->cwnd < req->cwnd_limit)
		req->cwnd += 1 + cost * LAW_FULL_PACKET * 4 / req->cwnd;
}

static void host_lost(struct eng_qp *qp)
{
	struct requester *req = &qp->req;

	req->cwnd -= req->cwnd / 4;
	if (req->cwnd < LAW_MIN_PACKETS * LAW_FULL_PACKET)
		req->cwnd = LAW_MIN_PACKETS * LAW_FULL_PACKET;
}

/* ---- network ---- */

static void set_window(struct eng_qp *qp, uint64_t cwnd)
{
	struct requester *req = &qp->req;
	uint64_t least = LAW_MIN_PACKETS * law_packet_weight(qp);

	req->cwnd = cwnd < least ? least : cwnd;
}

static void network_start(struct eng_qp *qp)
{
	struct requester *req = &qp->req;

	req->network = (struct network_law){ .alpha = ALPHA_ONE, .begins = qp->ecn.cnp != NULL };
	if (req->repair.peer == PEER_ANSWERED)
		req->repair.peer = PEER_UNANSWERED;
	req->network.window_psn = req->next_psn;
	if (qp->ecn.cnp)
		set_window(qp, ECT_PACKETS * law_packet_weight(qp));
}

static void cut(struct eng_qp *qp, uint64_t cwnd)
{
	qp->req.network.begins = false;
	set_window(qp, cwnd);
}

/* Marks of ACKs: once for each window the part that was marked is known. */
static void measure(struct requester *req, uint64_t cost)
{
	struct network_law *law = &req->network;
	uint64_t part;

	law->acked += cost;
	law->marked += law->echoed ? cost : 0;
	if (psn_diff(req->unacked_psn, law->window_psn) < 0)
		return;
	part = law->marked * ALPHA_ONE / law->acked;
	law->alpha = (uint16_t)(law->alpha + ((int32_t)part - (int32_t)law->alpha) / ALPHA_WEIGHT);
	law->window_psn = req->end_psn;
	law->acked = 0;
	law->marked = 0;
}

static void network_acked(struct eng_qp *qp, uint64_t cost)
{
	struct requester *req = &qp->req;
	struct network_law *law = &req->network;

	psn_follow(&req->repeated_psn, req->unacked_psn);
	if (law->echoes)
		measure(req, cost);
	if (law->echoed) {
		if (!cwnd_begins_recovery(qp))
			return;
		cut(qp, req->cwnd - req->cwnd * law->alpha / (2 * ALPHA_ONE));
	} else if (!cwnd_is_recovering(qp) && req->cwnd < req->cwnd_limit) {
		set_window(qp,
			   req->cwnd +
				   (law->begins ? cost : cost * law_packet_weight(qp) / req->cwnd));
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

const struct cwnd_law cwnd_laws[ENG_LAWS] = {
	[ENG_LAW_HOST] = { host_start, host_acked, host_lost, NULL, false },
	[ENG_LAW_NETWORK] = { network_start, network_acked, network_lost, network_congested, true },
};
