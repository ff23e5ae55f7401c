/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The events of loss recovery (loss_state.h) and its timers: the Local ACK Timeout with its retries
 * and the wait that an RNR NAK asks for (rule S10), and ahead of the timeout the probes (probe.h).
 */
#ifndef UROCE_ENGINE_RECOVERY_LOSS_H
#define UROCE_ENGINE_RECOVERY_LOSS_H

#include "engine/recovery/loss_state.h"
#include "engine/recovery/rtt.h"

/* unacked_psn has moved up: timers and retries start again. */
void loss_progress(struct eng_qp *qp, uint64_t now);

/* All that the packet that brought progress has changed is done: measures the round trip. */
static inline void loss_measure(struct eng_qp *qp, uint64_t now)
{
	struct requester *req = &qp->req;
	struct rtt *rtt = &req->rtt;

	if (!rtt_is_timing(rtt) || psn_diff(req->unacked_psn, rtt->timed_psn) <= 0)
		return;
	rtt_sample(rtt, now);
	req->loss.probes = 0;
}

/*
 * A READ response has come for what had come before.  If a timeout had it sent again, the
 * peer was late and not gone.  It answers the whole READ once more before it gets to the next
 * request, and is not silent meanwhile; each further retry would give it as much to do again.  So
 * from then on the Local ACK Timeout is as long as the specification allows.  Linux's rxe in an
 * emulated guest takes 2 seconds for 8 MiB and is silent for 80 ms at times, beside a timeout of 67
 * ms: ib_read_lat failed in each of five runs.
 */
void loss_repeated_response(struct eng_qp *qp, uint64_t now);

/*
 * The first packet leaves that is sent again, or that could not be sent before.  It may have waited
 * for room, so the Local ACK Timeout starts with it, but not with a probe.
 */
void loss_sent_again(struct eng_qp *qp, uint64_t now);

/*
 * A NAK, or an implied one (rule S8): unacked_psn is missing at the peer, and all packets from it
 * on are sent again.  This is done once until something is acknowledged, because packets of the
 * first try that are still under way cause more such responses.  This and the following functions
 * return a verdict (state.h).
 */
enum eng_status loss_nak(struct eng_qp *qp, uint64_t now);

bool loss_has_rnr_retries(const struct eng_qp *qp);
/* rule C6: wait as long as the RNR NAK says, then send the same packet again. */
enum eng_status loss_rnr_nak(struct eng_qp *qp, uint8_t timer_code, uint64_t now);
/* The time that it has named is over. */
void loss_rnr_over(struct eng_qp *qp, uint64_t now);

/* When loss_expire() acts next, or ENG_NEVER. */
uint64_t loss_deadline(const struct eng_qp *qp);
/*
 * A time before which there is no deadline, which costs less to compute; 0 when nothing is known
 * but by loss_deadline().
 */
uint64_t loss_deadline_least(const struct eng_qp *qp);
/* Returns true if the Local ACK Timeout is over. */
bool loss_times_out(const struct eng_qp *qp, uint64_t now);
enum eng_status loss_expire(struct eng_qp *qp, uint64_t now);

#endif
