/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Which packets carry AckReq, and ACK probes.  An ACK costs a packet and a system call at either
 * end, and a sender of unsignaled requests does not wait for it.  So AckReq is set where a
 * completion depends on the ACK, and otherwise only as often as is needed to keep the congestion
 * window, the send queue and the credits from running out without an ACK in flight.  One ACK at a
 * time is enough, since it acknowledges everything received by then (rule S7).
 *
 * If packets without AckReq are in flight and no ACK arrives for some time, an ACK probe requests
 * one.  It is a SEND of 0 bytes with the PSN before unacked_psn: a responder does not execute a
 * duplicate, but acknowledges it together with everything received since (rule S4).  Repeating one
 * of our own packets would read memory that the application may have freed, if it learned in
 * another way that the message had arrived.  An ACK probe is not a retry: it changes neither the
 * counters nor the timer of rule S10.
 */
#ifndef UROCE_ENGINE_RECOVERY_ACK_REQ_H
#define UROCE_ENGINE_RECOVERY_ACK_REQ_H

#include "loss_state.h"

/*
 * Minimum time without progress before an ACK probe.  A message sent less than this before its
 * receiver exits may stay unacknowledged.
 */
#define ACK_PROBE_AFTER_NS UINT64_C(1000000)

/* Inputs of ack_req_is_set() that are the same for all packets of a burst. */
struct ack_req_ctx {
	uint64_t now;
	bool contended;	  /* other QPs have packets in flight */
	bool may_be_late; /* no recent loss, so an ACK can still be requested by an ACK probe */
};
struct ack_req_ctx ack_req_read(const struct eng_qp *qp, uint64_t now);

/*
 * Returns true if packet index of wqe, which is about to be added to burst, must have AckReq.
 * bytes: its length on the wire; cost: its weight in the congestion window.
 */
bool ack_req_is_set(const struct eng_qp *qp, const struct eng_burst *burst,
		    const struct eng_send_wqe *wqe, uint32_t index, uint32_t bytes, uint64_t cost,
		    const struct ack_req_ctx *ack_ctx);

/* Returns true if packets without AckReq are in flight, and no packet with AckReq will follow. */
bool ack_probe_is_due(const struct eng_qp *qp);
/*
 * Returns true if something waits for the packets in flight: the event of SQD, or the completion of
 * a request with a local error or of a signaled local request.
 */
bool ack_probe_is_urgent(const struct eng_qp *qp);
/* Makes an ACK probe pending. */
void ack_probe_begin(struct eng_qp *qp, uint64_t now);
/* Puts the ACK probe into burst, which is empty. */
void ack_probe_transmit(struct eng_qp *qp, struct eng_burst *burst);

#endif
