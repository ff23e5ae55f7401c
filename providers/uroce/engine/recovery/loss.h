/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The events of loss recovery (loss_state.h) and its timers: the Local ACK Timeout with its retries
 * and the RNR NAK timer (rule S10), and ahead of the timeout the probes (probe.h).
 */
#ifndef UROCE_ENGINE_RECOVERY_LOSS_H
#define UROCE_ENGINE_RECOVERY_LOSS_H

#include "engine/recovery/loss_state.h"
#include "engine/recovery/rtt.h"

/* See eng_restore_retries(). */
void loss_restore_retries(struct eng_qp *qp, uint64_t now);

/* To be called when unacked_psn has increased: restarts timers and restores retries. */
void loss_progress(struct eng_qp *qp, uint64_t now);

/*
 * To be called at the end of a packet's processing: takes an RTT sample if the packet acknowledged
 * the PSN that is being timed.
 */
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
 * To be called for a duplicate READ response.  If it is due to a timeout, the peer was late and not
 * gone.  It sends the whole READ again before the next request, and each further retry would cause
 * as much work again.  So from then on the Local ACK Timeout is as long as the specification
 * allows.  (Linux's rxe in an emulated guest pauses for 80 ms at times, with a timeout of 67 ms.)
 */
void loss_repeated_response(struct eng_qp *qp, uint64_t now);

/*
 * To be called when the first packet after going back is sent.  It may have waited for room, so the
 * Local ACK Timeout starts now; but not in PROBE.
 */
void loss_sent_again(struct eng_qp *qp, uint64_t now);

/*
 * Handles a NAK, or an implied one (rule S8): all packets from unacked_psn on are sent again.  This
 * happens once until there is progress, because packets still in flight cause further NAKs.  This
 * and the following functions return ENG_SUCCESS, or the error that the QP fails with
 * (qp_transition.h).
 */
enum eng_status loss_nak(struct eng_qp *qp, uint64_t now);

bool loss_has_rnr_retries(const struct eng_qp *qp);
/* Handles an RNR NAK: waits for the time of timer_code, then sends the packet again (rule C6). */
enum eng_status loss_rnr_nak(struct eng_qp *qp, uint8_t timer_code, uint64_t now);
/* Ends RNR_WAIT, because the RNR NAK timer has expired. */
void loss_rnr_over(struct eng_qp *qp, uint64_t now);

/* Time in ns of the next call of loss_expire(), or ENG_NEVER. */
uint64_t loss_deadline(const struct eng_qp *qp);
/* Lower bound of loss_deadline() that is cheaper to compute; 0: unknown. */
uint64_t loss_deadline_least(const struct eng_qp *qp);
/* Returns true if the Local ACK Timeout has expired. */
bool loss_times_out(const struct eng_qp *qp, uint64_t now);
enum eng_status loss_expire(struct eng_qp *qp, uint64_t now);

#endif
