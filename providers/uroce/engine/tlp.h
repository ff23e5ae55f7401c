/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Tail-loss probe.  Where packets are lost, so are NAKs, ACKs and retransmissions, and then both
 * ends are silent until the Local ACK Timeout is over (67 ms by default, thousands of round
 * trips).  So a requester whose peer has reported a loss within the last second does not wait for
 * it: when nothing has been acknowledged for some round trips it sends the oldest packet once
 * more, alone and with AckReq; again after twice that time, and so on up to the timeout.  The
 * response says how far the peer has got, and sending goes on from there.  A probe is no retry: it
 * does not touch the timer and the counters of rule S10.  After a timeout there are no probes
 * until the peer reports a loss again.  Where a repair, or parts of READs, have been asked for and
 * not come, these are sent again instead (repair.h, gaps.h).
 *
 * The answer to a READ comes at a rate that only its responder knows, and a repeated one is
 * answered from the gap to its end.  So READs and Atomics are probed for after a longer silence; on
 * a network, where responses tell how long the silence between two of them is, after some times
 * that.  There the responses of one READ may be all that is under way, and the last of them be what
 * a queue has no room for: then nothing tells of the loss, and so they are probed for without that.
 * Not where marks are asked for: CNPs make the responder slower, and queues that mark lose nothing.
 *
 * A silence that a probe has ended is a measure of how long probes wait.  If it counted, each loss
 * would be found after four times as long as the one before.  It counts when a response comes
 * twice, which shows that the probe was needless.
 */
#ifndef UROCE_ENGINE_TLP_H
#define UROCE_ENGINE_TLP_H

#include "qp.h"

/* The shortest wait: above what two busy processes of a host take to answer. */
#define TLP_MIN_NS UINT64_C(300000)

/* Is the Local ACK Timeout long enough for probes, and is there one? */
bool tlp_has_time(const struct eng_qp *qp);
/* Also where the oldest request is a READ or Atomic, which is probed later? */
bool tlp_has_time_for_reads(const struct eng_qp *qp);
/* unacked_psn and what follows is about to be sent again; no probes until the peer asks for it. */
void tlp_stop(struct eng_qp *qp);
/* The peer did. */
void tlp_told_of_loss(struct eng_qp *qp, uint64_t now);
/* unacked_psn has moved. */
void tlp_progress(struct eng_qp *qp, uint64_t now);
/* A READ response has come; before it the peer was silent since that time. */
void tlp_read_response(struct eng_qp *qp, uint64_t since, uint64_t now);
/* Is it known how long the peer is silent between two READ responses? */
static inline bool tlp_times_reads(const struct eng_qp *qp)
{
	return qp->req.tlp.silence_ns > 0;
}
/* A READ response has come for what had come before. */
void tlp_repeated_response(struct eng_qp *qp, uint64_t now);
/* When to send one, or ENG_NEVER; timeout_ns is the Local ACK Timeout. */
uint64_t tlp_deadline(const struct eng_qp *qp, uint64_t timeout_ns);
/* Its time has come: only the oldest packet may go now, again. */
void tlp_begin(struct eng_qp *qp, uint64_t timeout_ns, uint64_t now);

#endif
