/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "credit.h"

#include "engine/base/aeth.h"

/* Returns true for requests that the peer counts but that use no receive WQE there. */
static bool is_uncredited(uint8_t op)
{
	return !op_row(op)->needs_receive && !op_is_local(op);
}

/*
 * rule C12: returns the number of uncredited requests started after msn.  The request with SSN msn
 * + 1 is the oldest that msn does not count; uncredited in its WQE counts all uncredited requests
 * up to itself.
 */
static uint32_t uncredited_behind(const struct eng_qp *qp, uint32_t msn)
{
	const struct requester *req = &qp->req;
	uint32_t behind = psn_sub(req->begun_ssn, msn); /* requests started after msn */
	uint32_t index = req->begun - behind;
	const struct eng_send_wqe *oldest;

	/* The send queue does not hold so many requests: the MSN is old or wrong. */
	if (behind == 0 || behind > req->begun - qp->sq->tail)
		return 0;
	/* Local requests are in the queue as well but have no SSN of their own. */
	while (index != qp->sq->tail && psn_diff(sq_at(qp, index - 1)->ssn, msn) > 0)
		index--;
	oldest = sq_at(qp, index);
	return req->credit.uncredited - oldest->uncredited + is_uncredited(oldest->op);
}

inline void credit_update(struct eng_qp *qp, uint8_t syndrome, uint32_t msn)
{
	struct credit *credit = &qp->req.credit;
	uint32_t lsn;

	credit->last_code = syndrome_code(syndrome);
	if (credit->last_code == CREDIT_CODE_UNLIMITED) {
		if (credit->report != CREDIT_REPORT_UNLIMITED)
			qp->ops->event(qp->owner, ENG_EVENT_CREDITS_HIDDEN);
		credit->report = CREDIT_REPORT_UNLIMITED;
		/*
		 * Keeps lsn near msn, as the peer may report credits again after half of the number
		 * space, when lsn would seem to lie ahead.
		 */
		psn_follow(&credit->lsn, msn);
		return;
	}
	credit->report = CREDIT_REPORT_COUNT;
	lsn = psn_add(msn, credit_decode(credit->last_code) + uncredited_behind(qp, msn));
	/* rules C12, U3: a stale response never moves the limit back. */
	if (psn_diff(lsn, credit->lsn) > 0) {
		credit->lsn = lsn;
		credit->wait_deadline = 0;
	}
}

void credit_update_unsolicited(struct eng_qp *qp, uint8_t syndrome, uint32_t msn)
{
	const uint32_t lsn = qp->req.credit.lsn;

	credit_update(qp, syndrome, msn);
	if (qp->req.credit.lsn != lsn)
		qp->req.credit.peer_sends_unsolicited = true;
}

bool credit_wait_allowed(struct eng_qp *qp, uint64_t now)
{
	struct credit *credit = &qp->req.credit;
	uint64_t wait = credit->last_rnr_ns;

	if (!credit->peer_sends_unsolicited || wait == 0)
		return false;
	if (wait > CREDIT_WAIT_MAX_NS)
		wait = CREDIT_WAIT_MAX_NS;
	if (credit->wait_deadline == 0)
		credit->wait_deadline = now + wait;
	if (credit->wait_deadline > now)
		return true;
	credit_wait_expired(qp);
	return false;
}

void credit_wait_expired(struct eng_qp *qp)
{
	qp->req.credit.wait_deadline = 0;
	qp->req.credit.peer_sends_unsolicited = false;
}

void credit_consume_uncredited(struct eng_qp *qp, const struct eng_send_wqe *wqe)
{
	struct credit *credit = &qp->req.credit;

	if (!is_uncredited(wqe->op))
		return;
	credit->uncredited++;
	credit->lsn = psn_add(credit->lsn, 1);
}

uint32_t credit_free(const struct eng_qp *qp)
{
	return eng_ring_used(qp->rq);
}

void credit_acknowledged(struct eng_qp *qp, uint32_t psn)
{
	struct credit_adv *credit_adv = &qp->resp.credit_adv;

	/* A response repeated later does not change the last positive PSN. */
	if (psn_diff(psn, credit_adv->last_positive_psn) <= 0)
		return;
	credit_adv->last_positive_psn = psn;
	credit_adv->by_response = false;
}

inline uint8_t credit_advertise(struct eng_qp *qp, uint32_t psn)
{
	struct credit_adv *credit_adv = &qp->resp.credit_adv;
	uint32_t promise;

	credit_acknowledged(qp, psn);
	if (!qp->reports_credits) {
		credit_adv->code = CREDIT_CODE_UNLIMITED; /* rule C7 */
		return syndrome_make(AETH_ACK, credit_adv->code);
	}
	credit_adv->code = credit_encode(credit_free(qp));
	/* wqes_done, not wqes_consumed: MSN does not count the message being received yet. */
	promise = qp->resp.wqes_done + credit_decode(credit_adv->code);
	if ((int32_t)(promise - credit_adv->promised) > 0)
		credit_adv->promised = promise;
	return syndrome_make(AETH_ACK, credit_adv->code);
}

bool credit_may_resend_ack(const struct eng_qp *qp)
{
	return !qp->resp.credit_adv.by_response || credit_is_reported(qp);
}

/*
 * Counted in receive WQEs, since MSN also advances by requests that use none.  An update is sent
 * once the peer has credits left for at most a quarter of the receive queue and the update at least
 * doubles them: a burst of posted receives then costs a few ACKs, not one each (rule C10), and an
 * idle sender gets an update without a request (rule U2).
 */
bool credit_update_pending(const struct eng_qp *qp)
{
	const struct responder *resp = &qp->resp;
	int32_t left = (int32_t)(resp->credit_adv.promised - resp->wqes_consumed);
	uint32_t now;

	if (!qp->reports_credits)
		return false;
	if (left < 0)
		left = 0;
	if ((uint32_t)left > qp->rq->limit / 4 || !credit_may_resend_ack(qp))
		return false;
	now = credit_decode(credit_encode(credit_free(qp)));
	/* An ACK that would not advance the peer's LSN is no update. */
	return (int32_t)(resp->wqes_done + now - resp->credit_adv.promised) > 0 &&
	       now >= 2 * (uint32_t)left;
}
