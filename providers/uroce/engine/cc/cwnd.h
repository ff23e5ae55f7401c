/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * How much may be under way.  The peer's socket buffer is finite and drops what does not fit, so
 * the window counts bytes as a socket charges them, starts with what a default buffer holds, and
 * goes down and up as cc.h says.  A READ request weighs as its responses do: it is a window of
 * what comes as well, and keeps the queues of a network as short as one of what goes.  It cannot be
 * sent in parts, so it goes when less than a window is under way.  On a host it weighs a part of
 * that, as its responses come into our own buffer and are paced by their sender (pacing.h).
 * Responses that have been placed behind a missing one are not under way: were they counted, the
 * line would idle for as long as that is lost again.
 */
#ifndef UROCE_ENGINE_CC_CWND_H
#define UROCE_ENGINE_CC_CWND_H

#include "engine/qp_priv.h"

void cwnd_reset(struct eng_qp *qp);
/* Weight of the first packets of a message, out of all that it has. */
uint64_t cwnd_cost(const struct eng_qp *qp, const struct eng_send_wqe *wqe, uint32_t packets);
/* ... of its packets [from, to). */
static inline uint64_t cwnd_cost_between(const struct eng_qp *qp, const struct eng_send_wqe *wqe,
					 uint32_t from, uint32_t to)
{
	return cwnd_cost(qp, wqe, to) - (from ? cwnd_cost(qp, wqe, from) : 0);
}
/* May a packet of this weight be sent?  An empty wire always takes one. */
bool cwnd_open(const struct eng_qp *qp, uint64_t cost);
/* What may be under way besides what is. */
uint64_t cwnd_room(const struct eng_qp *qp);
/* Is a packet under way that the peer has to answer?  Then its ACK will bring this QP back. */
static inline bool ack_req_in_flight(const struct eng_qp *qp)
{
	const struct requester *req = &qp->req;

	return psn_in(req->ackreq_psn, req->unacked_psn, psn_sub(req->next_psn, req->unacked_psn));
}
/* May this QP begin another burst, seen what all QPs have under way? */
bool budget_is_open(const struct eng_qp *qp);
/* Do other QPs have something under way as well? */
bool budget_is_contended(const struct eng_qp *qp);
/* After a packet of this weight, would another one like it have to wait? */
bool cwnd_closes(const struct eng_qp *qp, uint64_t cost);
/* A packet of this weight goes, or (again by going back) packets are as if never sent. */
void cwnd_sent(struct eng_qp *qp, uint64_t cost);
void cwnd_rollback(struct eng_qp *qp, uint64_t cost);
/*
 * Tell the share what has become of all that since the last time: once for each burst and for each
 * response, since the share is a cache line of all QPs.
 */
void budget_publish(struct eng_qp *qp);
/* What is under way counts as lost: it will be sent again. */
void cwnd_reset_inflight(struct eng_qp *qp);
/* Packets of this weight have been acknowledged. */
void cwnd_progress(struct eng_qp *qp, uint64_t cost);
/* Has the window been cut, and is something unanswered that was sent before that? */
static inline bool cwnd_is_recovering(const struct eng_qp *qp)
{
	return qp->req.cwnd_recovery_psn != qp->req.unacked_psn;
}
/* Returns true if the window may be cut: once for all packets that are under way now. */
bool cwnd_begins_recovery(struct eng_qp *qp);
/* Packets were lost: reduces once per window, since further losses are the same congestion. */
void cwnd_first_loss(struct eng_qp *qp);
/* The same, but reduces again when packets that were sent again have been lost. */
void cwnd_loss(struct eng_qp *qp);
/*
 * Packets have met congestion, and no more is known: the same.  False when this window goes by
 * something else.
 */
bool cwnd_congested(struct eng_qp *qp);

#endif
