/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "window.h"

/* What the kernel charges a socket beyond the payload of a packet in a run, about. */
#define PACKET_OVERHEAD 116
/* Packets of 4 KB in runs that the default socket buffer of 208 KB holds, as measured. */
#define DEFAULT_PACKETS 90
#define FULL_PACKET (WIRE_MAX_MTU + PACKET_OVERHEAD)
/* A READ request weighs a quarter of what its responses will. */
#define READ_SHARE 4
#define WINDOW_MIN ((uint64_t)4 * FULL_PACKET)

static uint64_t under_way(const struct requester *req)
{
	return req->cost_next - req->cost_unacked;
}

void window_publish(struct eng_qp *qp)
{
	struct requester *req = &qp->req;
	uint64_t now = under_way(req);

	if (!qp->window_share || now == req->cost_published)
		return;
	__atomic_fetch_add(&qp->window_share->under_way, now - req->cost_published,
			   __ATOMIC_RELAXED);
	req->cost_published = now;
}

void window_reset(struct eng_qp *qp)
{
	struct requester *req = &qp->req;
	uint32_t packets = qp->window_packets ? qp->window_packets : DEFAULT_PACKETS;

	window_emptied(qp);
	req->window_limit = (uint64_t)packets * FULL_PACKET;
	if (req->window_limit < WINDOW_MIN)
		req->window_limit = WINDOW_MIN;
	req->window = (uint64_t)DEFAULT_PACKETS * FULL_PACKET;
	if (req->window > req->window_limit)
		req->window = req->window_limit;
	req->cost_next = 0;
	req->cost_unacked = 0;
	req->window_recovering = false;
}

uint64_t window_cost(const struct eng_send_wqe *wqe, uint32_t packets, uint32_t mtu)
{
	uint64_t bytes = packets == wqe->packets ? wqe->length : (uint64_t)packets * mtu;
	uint64_t cost = bytes + (uint64_t)packets * PACKET_OVERHEAD;

	/* The responder paces what it sends, so that several READs may be under way. */
	return wqe->op == ENG_READ ? cost / READ_SHARE : cost;
}

/* A QP with nothing under way may always send: else nobody would ever wake it. */
bool window_open(const struct eng_qp *qp, uint64_t cost)
{
	uint64_t now = under_way(&qp->req);

	return now == 0 || (!qp->req.probe.alone && now + cost <= qp->req.window);
}

bool window_closes(const struct eng_qp *qp, uint64_t cost)
{
	return qp->req.probe.alone || under_way(&qp->req) + 2 * cost > qp->req.window;
}

bool window_answer_is_due(const struct eng_qp *qp)
{
	const struct requester *req = &qp->req;

	return psn_in(req->asked_psn, req->unacked_psn, psn_sub(req->next_psn, req->unacked_psn));
}

uint64_t window_room(const struct eng_qp *qp)
{
	uint64_t now = under_way(&qp->req);

	return now < qp->req.window ? qp->req.window - now : 0;
}

/*
 * Looked at once for a run, not for a packet: single packets here and there would cost a system
 * call each.  So all QPs together may be a run beyond the limit.
 */
bool window_share_open(const struct eng_qp *qp)
{
	const struct eng_window_share *share = qp->window_share;

	/* With nothing under way the owner's queue brings it back, if there is one. */
	if (!share || (under_way(&qp->req) == 0 ? !share->queued : !window_answer_is_due(qp)))
		return true;
	return __atomic_load_n(&share->under_way, __ATOMIC_RELAXED) <
	       __atomic_load_n(&share->limit, __ATOMIC_RELAXED);
}

bool window_share_is_contended(const struct eng_qp *qp)
{
	const struct eng_window_share *share = qp->window_share;

	return share &&
	       __atomic_load_n(&share->under_way, __ATOMIC_RELAXED) != qp->req.cost_published;
}

void window_sent(struct eng_qp *qp, uint64_t cost)
{
	qp->req.cost_next += cost;
}

void window_taken_back(struct eng_qp *qp, uint64_t cost)
{
	qp->req.cost_next -= cost;
}

void window_emptied(struct eng_qp *qp)
{
	window_taken_back(qp, under_way(&qp->req));
	window_publish(qp);
}

static void grow(struct requester *req, uint64_t cost)
{
	if (req->window_recovering && psn_diff(req->unacked_psn, req->window_recovery_psn) >= 0)
		req->window_recovering = false;
	if (req->window_recovering || req->window >= req->window_limit)
		return;
	/* Four full packets per window acknowledged. */
	req->window += 1 + cost * FULL_PACKET * 4 / req->window;
	if (req->window > req->window_limit)
		req->window = req->window_limit;
}

void window_progress(struct eng_qp *qp, uint64_t cost)
{
	struct requester *req = &qp->req;

	/* After going back, what was sent before may be acknowledged ahead of next_psn. */
	req->cost_unacked += cost;
	if (req->cost_next < req->cost_unacked)
		req->cost_next = req->cost_unacked;
	grow(req, cost);
}

void window_loss(struct eng_qp *qp)
{
	struct requester *req = &qp->req;

	if (req->window_recovering)
		return;
	req->window_recovering = true;
	req->window_recovery_psn = req->end_psn;
	req->window -= req->window / 4;
	if (req->window < WINDOW_MIN)
		req->window = WINDOW_MIN;
}
