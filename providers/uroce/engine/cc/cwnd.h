/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Congestion window: how many bytes may be in flight.  The peer's socket buffer drops packets that
 * do not fit, so the window counts bytes as a socket charges them, starts with what a default
 * buffer holds, and decreases and increases as described in cc.h.  A READ request weighs as much as
 * its responses, so that the window limits them as well and keeps the queues of a network short.  A
 * READ cannot be sent in parts, so it is sent when less than a window is in flight.  On a host it
 * weighs a part of that, since its responses enter our own buffer and are paced by the responder
 * (pacing.h).  Responses placed out of order do not count as in flight: otherwise the link would be
 * idle until the missing one arrives.
 */
#ifndef UROCE_ENGINE_CC_CWND_H
#define UROCE_ENGINE_CC_CWND_H

#include "engine/qp_priv.h"

void cwnd_reset(struct eng_qp *qp);
/* Weight in bytes of the first packets of a message. */
uint64_t cwnd_cost(const struct eng_qp *qp, const struct eng_send_wqe *wqe, uint32_t packets);
/* Weight in bytes of packets [from, to) of a message. */
static inline uint64_t cwnd_cost_between(const struct eng_qp *qp, const struct eng_send_wqe *wqe,
					 uint32_t from, uint32_t to)
{
	return cwnd_cost(qp, wqe, to) - (from ? cwnd_cost(qp, wqe, from) : 0);
}
/* Returns true if a packet of this weight may be sent; with nothing in flight one always may. */
bool cwnd_open(const struct eng_qp *qp, uint64_t cost);
/* Bytes that may be sent beyond those in flight. */
uint64_t cwnd_room(const struct eng_qp *qp);
/* Returns true if a packet in flight has AckReq, so that an ACK will arrive. */
static inline bool ack_req_in_flight(const struct eng_qp *qp)
{
	const struct requester *req = &qp->req;

	return psn_in(req->ackreq_psn, req->unacked_psn, psn_sub(req->next_psn, req->unacked_psn));
}
/* Returns true if the in-flight budget of all QPs allows another burst. */
bool budget_is_open(const struct eng_qp *qp);
/* Returns true if other QPs have packets in flight. */
bool budget_is_contended(const struct eng_qp *qp);
/* Returns true if after a packet of this weight another one would have to wait. */
bool cwnd_closes(const struct eng_qp *qp, uint64_t cost);
/* To be called when a packet of this weight is sent, or packets of this weight are taken back. */
void cwnd_sent(struct eng_qp *qp, uint64_t cost);
void cwnd_rollback(struct eng_qp *qp, uint64_t cost);
/*
 * Adds the change since the last call to the in-flight budget.  To be called once for each burst
 * and for each response, since the budget is a cache line of all QPs.
 */
void budget_publish(struct eng_qp *qp);
/* Counts all packets in flight as no longer in flight, because they are sent again or given up. */
void cwnd_reset_inflight(struct eng_qp *qp);
/* To be called when packets of this weight have been acknowledged; increases the window. */
void cwnd_progress(struct eng_qp *qp, uint64_t cost);
/* Returns true if packets sent before the last reduction of the window are unacked. */
static inline bool cwnd_is_recovering(const struct eng_qp *qp)
{
	return qp->req.cwnd_recovery_psn != qp->req.unacked_psn;
}
/*
 * Returns true if the window may be reduced, and then refuses further reductions until all packets
 * in flight now are acknowledged.
 */
static inline bool cwnd_begins_recovery(struct eng_qp *qp)
{
	if (cwnd_is_recovering(qp))
		return false;
	qp->req.cwnd_recovery_psn = qp->req.end_psn;
	return true;
}
/* Handles a loss: reduces once per window, since further losses are the same congestion. */
void cwnd_first_loss(struct eng_qp *qp);
/* Handles a loss; reduces again when retransmitted packets have been lost. */
void cwnd_loss(struct eng_qp *qp);
/* Handles a CNP.  Returns false if the algorithm ignores CNPs. */
bool cwnd_congested(struct eng_qp *qp);

#endif
