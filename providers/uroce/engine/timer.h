/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The times of the requester (rule S10): the Local ACK Timeout with its retries, the wait that an
 * RNR NAK asks for, and before the timeout tail-loss probes and ACK solicitations.
 */
#ifndef UROCE_ENGINE_TIMER_H
#define UROCE_ENGINE_TIMER_H

#include "qp.h"

/* Something has been acknowledged: all times and tries begin anew. */
void timer_progress(struct eng_qp *qp, uint64_t now);

/*
 * A READ response has come for what had come before.  If a timeout had it sent again, the
 * peer was late and not gone.  It answers the whole READ once more before it gets to the next
 * request, and is not silent meanwhile; each further retry would give it as much to do again.  So
 * from then on the Local ACK Timeout is as long as the specification allows.  Linux's rxe in an
 * emulated guest takes 2 seconds for 8 MiB and is silent for 80 ms at times, beside a timeout of 67
 * ms: ib_read_lat failed in each of five runs.
 */
void timer_repeated_response(struct eng_qp *qp, uint64_t now);

/*
 * The first packet goes of what has been gone back over or could not be sent.  It may have waited
 * for room, so the Local ACK Timeout begins with it; not with a tail-loss probe, which is sent
 * ahead of that.
 */
void timer_sent_again(struct eng_qp *qp, uint64_t now);

/*
 * A retry for packets that were lost, by NAK, implied NAK or time-out; the last one fails.  This
 * and the following functions return a verdict (state.h).
 */
enum eng_status timer_retry(struct eng_qp *qp, uint64_t now);

bool timer_has_rnr_retries(const struct eng_qp *qp);
/* rule C6: wait as long as the RNR NAK says, then send the same packet again. */
enum eng_status timer_rnr_nak(struct eng_qp *qp, uint8_t timer_code, uint64_t now);
/* The time that it has named is over. */
void timer_rnr_over(struct eng_qp *qp, uint64_t now);

/* When timer_expire() acts next, or ENG_NEVER. */
uint64_t timer_deadline(const struct eng_qp *qp);
/*
 * What costs less to know: no deadline is earlier than this.  0 when nothing is known but by
 * timer_deadline().
 */
uint64_t timer_deadline_least(const struct eng_qp *qp);
/* Returns true if the Local ACK Timeout is over. */
bool timer_is_over(const struct eng_qp *qp, uint64_t now);
enum eng_status timer_expire(struct eng_qp *qp, uint64_t now);

#endif
