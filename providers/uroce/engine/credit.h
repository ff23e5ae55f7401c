/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * End-to-end flow control, both ends of it.
 *
 * As requester (rules C3, C11-C14): each positive response carries MSN and credit count; their sum
 * is LSN, the SSN of the last request that may count on a receive WQE.  An uncredited request,
 * which needs no receive WQE, moves LSN one further when it is started.  A request that needs a
 * receive WQE and is beyond LSN is limited.
 *
 * As responder (rules C2, C4-C10): every positive response reports the number of free receive WQEs.
 * An unsolicited ACK is sent when the peer has used up its credits and there are more now.
 */
#ifndef UROCE_ENGINE_CREDIT_H
#define UROCE_ENGINE_CREDIT_H

#include "engine/base/op.h"
#include "qp_priv.h"

/*
 * Maximum wait for credits, which limits the delay if an unsolicited ACK is lost.  Longer than
 * usual RNR NAK timers (code 12: 0.64 ms).
 */
#define CREDIT_WAIT_MAX_NS UINT64_C(2000000)

/* Requester: takes the credits of a positive AETH and advances LSN (rule C12). */
void credit_update(struct eng_qp *qp, uint8_t syndrome, uint32_t msn);
/*
 * Requester: to be called when wqe is started; advances LSN by 1 if wqe needs no receive WQE (rule
 * C12).
 */
void credit_consume_uncredited(struct eng_qp *qp, const struct eng_send_wqe *wqe);
/* Requester: returns true if the credits cover the request with this SSN. */
static inline bool credit_covers(const struct eng_qp *qp, uint32_t ssn)
{
	const struct credit *credit = &qp->req.credit;

	return credit->report == CREDIT_REPORT_UNLIMITED || psn_diff(ssn, credit->lsn) <= 0;
}
/* Requester: returns true if the peer reports credits (rule C3).  Linux's rxe does not. */
static inline bool credit_is_reported(const struct eng_qp *qp)
{
	return qp->req.credit.report == CREDIT_REPORT_COUNT;
}

/* Requester: returns true if wqe is a limited request (rule C13). */
static inline bool credit_limited(const struct eng_qp *qp, const struct eng_send_wqe *wqe)
{
	return op_row(wqe->op)->needs_receive && !credit_covers(qp, wqe->ssn);
}

/*
 * Requester: returns true if the next limited request should wait for credits, and starts the wait.
 * Rule C13 allows to send it at any time, but a request that finds no receive WQE costs an RNR NAK
 * and its whole timer (rule S10), which an unsolicited ACK does not shorten.  So the request waits
 * if the peer has sent unsolicited ACKs (rule C10) and the RNR NAK timer is known: at most for that
 * time, and at most CREDIT_WAIT_MAX_NS.  After a wait without credits the request is sent, and
 * later requests do not wait until another unsolicited ACK has arrived.
 */
bool credit_wait_allowed(struct eng_qp *qp, uint64_t now);
/* Requester: handles an unsolicited ACK (rules C8, C9). */
void credit_update_unsolicited(struct eng_qp *qp, uint8_t syndrome, uint32_t msn);
/*
 * Requester: ends a wait without credits; later requests do not wait until another unsolicited ACK
 * arrives.
 */
void credit_wait_expired(struct eng_qp *qp);
/* Requester: end of the wait for credits in ns, or ENG_NEVER. */
static inline uint64_t credit_deadline(const struct eng_qp *qp)
{
	return qp->req.credit.wait_deadline ? qp->req.credit.wait_deadline : ENG_NEVER;
}

/* Responder: number of receive WQEs free for new messages (rule C5). */
uint32_t credit_free(const struct eng_qp *qp);
/* Responder: returns the syndrome of a positive response with this PSN, which counts as sent. */
uint8_t credit_advertise(struct eng_qp *qp, uint32_t psn);
/* Responder: records that this PSN has been acknowledged by a response or a NAK. */
void credit_acknowledged(struct eng_qp *qp, uint32_t psn);
/*
 * Responder: returns true if the last positive response may be repeated as an Acknowledge, which
 * rule C8 always allows.  But if it was a READ or Atomic response and was lost, Linux's rxe takes
 * the Acknowledge for it: the READ succeeds without its data (rxe_comp.c, check_ack()).  So such a
 * response is not repeated to a peer that reports no credits, as rxe does not.  Rule C10 leaves the
 * time of an unsolicited ACK to the responder, and a limited request gets the credits in any case.
 */
bool credit_may_resend_ack(const struct eng_qp *qp);
/* Responder that can respond: returns true if an unsolicited ACK is pending (rules C9, C10). */
bool credit_update_pending(const struct eng_qp *qp);

#endif
