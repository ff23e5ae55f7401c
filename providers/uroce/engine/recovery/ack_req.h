/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * ACK solicitation: which packets carry AckReq, and what is done when an ACK is missing that none
 * has requested.  An ACK costs a packet and a system call at either end, and a sender whose
 * requests are not signaled does not wait for any.  So AckReq is set where a completion waits for
 * the ACK, and else just often enough that the congestion window, the send queue and the credits
 * never run out without an ACK on its way: one at a time, which covers everything that the peer
 * has got by then (rule S7).
 *
 * When packets without AckReq are in flight and no ACK has come for a while, one is solicited.
 * Any packet of the past will do, since a responder does not execute a duplicate but acknowledges
 * it, with all that has come since (rule S4): it is a SEND of no bytes with the PSN before
 * unacked_psn.  To repeat one of our own packets would mean to read memory that the application
 * may have freed, since the peer's answer has told it that the message arrived.  A solicitation is
 * no retry: it does not touch the counters and the timer of rule S10.
 */
#ifndef UROCE_ENGINE_RECOVERY_ACK_REQ_H
#define UROCE_ENGINE_RECOVERY_ACK_REQ_H

#include "loss_state.h"

/*
 * An ACK is solicited after this time without progress, at the earliest.  A peer that ends sooner
 * after our last message may leave it without an ACK.
 */
#define ACK_PROBE_AFTER_NS UINT64_C(1000000)

/* What holds for all packets of a burst, looked at once. */
struct ack_req_ctx {
	uint64_t now;
	bool contended;	  /* other QPs have packets under way */
	bool may_be_late; /* packets arrive, and there is time to solicit an ACK later */
};
struct ack_req_ctx ack_req_look(const struct eng_qp *qp, uint64_t now);

/*
 * Does packet index of wqe, of so many bytes and this weight, the next to be sent and to be added
 * to burst, ask for an ACK?
 */
bool ack_req_is_set(const struct eng_qp *qp, const struct eng_burst *burst,
		    const struct eng_send_wqe *wqe, uint32_t index, uint32_t bytes, uint64_t cost,
		    const struct ack_req_ctx *facts);

/*
 * Returns true if packets are under way and none of them has AckReq, nor will what is sent next
 * have it.
 */
bool ack_probe_is_due(const struct eng_qp *qp);
/* Does the application wait for what is under way, without a signal of its own? */
bool ack_probe_is_urgent(const struct eng_qp *qp);
/* Its time has come. */
void ack_probe_begin(struct eng_qp *qp, uint64_t now);
/* Puts the solicitation into burst, which is empty. */
void ack_probe_transmit(struct eng_qp *qp, struct eng_burst *burst);

#endif
