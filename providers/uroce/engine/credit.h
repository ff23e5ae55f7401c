/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * End-to-end flow control, both ends of it.
 *
 * As requester (rules C3, C11-C14): each positive response carries MSN and credit count; their sum
 * is LSN, the SSN of the last request that may count on a receive WQE.  Requests that need none
 * move LSN one further when they are begun.  A request beyond LSN is limited.
 *
 * As responder (rules C2, C4-C10): every positive response reports the receive WQEs now free.  An
 * unsolicited ACK is owed when the peer has used up what it heard of and there is more now.
 */
#ifndef UROCE_ENGINE_CREDIT_H
#define UROCE_ENGINE_CREDIT_H

#include "engine/base/op.h"
#include "qp_priv.h"

/* Above the usual RNR timers (code 12 is 0.64 ms); an ACK that was lost costs no more than this. */
#define CREDIT_WAIT_MAX_NS UINT64_C(2000000)

/* Requester: a positive AETH with this syndrome and MSN has come. */
void credit_update(struct eng_qp *qp, uint8_t syndrome, uint32_t msn);
/* Requester: wqe is being begun. */
void credit_consume_uncredited(struct eng_qp *qp, const struct eng_send_wqe *wqe);
/* Requester: do credits reach as far as the request with this SSN? */
static inline bool credit_covers(const struct eng_qp *qp, uint32_t ssn)
{
	const struct credit *credit = &qp->req.credit;

	return credit->report == CREDIT_REPORT_UNLIMITED || psn_diff(ssn, credit->lsn) <= 0;
}
/* Requester: does the peer tell of credits (rule C3)?  Linux's rxe does not. */
static inline bool credit_is_reported(const struct eng_qp *qp)
{
	return qp->req.credit.report == CREDIT_REPORT_COUNT;
}

/* Requester: does wqe lie beyond what credits allow (rule C13)? */
static inline bool credit_limited(const struct eng_qp *qp, const struct eng_send_wqe *wqe)
{
	return op_row(wqe->op)->needs_receive && !credit_covers(qp, wqe->ssn);
}

/*
 * Requester: may the limited request that comes next wait for news of credits, instead of asking
 * for them?  Rule C13 does not withhold it for want of a credit, but leaves the time to us: a
 * request that comes too early costs an RNR NAK and the wait that this names (rule S10), which no
 * news shorten.  So it waits where both are known: that the peer tells of credits unasked (rule
 * C10), and what a refusal costs.  It waits no longer than that, nor than CREDIT_WAIT_MAX_NS: then
 * it goes, and the next one waits only when news have come unasked again.
 */
bool credit_wait_allowed(struct eng_qp *qp, uint64_t now);
/* Requester: an unsolicited ACK with this syndrome and MSN has come (rules C8, C9). */
void credit_update_unsolicited(struct eng_qp *qp, uint8_t syndrome, uint32_t msn);
/* Requester: the time to wait for news is over. */
void credit_wait_expired(struct eng_qp *qp);
/* Requester: when that is, or ENG_NEVER. */
static inline uint64_t credit_deadline(const struct eng_qp *qp)
{
	return qp->req.credit.wait_deadline ? qp->req.credit.wait_deadline : ENG_NEVER;
}

/* Responder: receive WQEs free for new messages (rule C5). */
uint32_t credit_free(const struct eng_qp *qp);
/* Responder: the syndrome for a positive response, which counts as sent with this PSN. */
uint8_t credit_advertise(struct eng_qp *qp, uint32_t psn);
/* Responder: this PSN has been answered positively, or a NAK has said so of it. */
void credit_acknowledged(struct eng_qp *qp, uint32_t psn);
/*
 * Responder: may the last positive response be repeated as an Acknowledge?  rule C8 allows it
 * always. But if that was the answer to a READ or an Atomic, and the answer was lost, then Linux's
 * rxe takes the Acknowledge for the answer: the READ succeeds without its bytes (rxe_comp.c,
 * check_ack()).  So a peer that has told of no credits, as rxe never does, is spared: rule C10
 * leaves the time to the responder, and a limited request brings what is not volunteered.
 */
bool credit_may_resend_ack(const struct eng_qp *qp);
/* Responder that can respond: is an unsolicited ACK owed (rules C9, C10)? */
bool credit_update_pending(const struct eng_qp *qp);

#endif
