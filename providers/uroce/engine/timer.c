/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "timer.h"

#include "codes.h"
#include "credit.h"
#include "cwnd.h"
#include "repair.h"
#include "sendqueue.h"
#include "solicit.h"
#include "tlp.h"

/* The specification allows four times the Local ACK Timeout. */
#define LATE_SHIFT 2

static uint64_t timeout_ns(const struct eng_qp *qp)
{
	return ack_timeout_ns(qp->attr.timeout_code) << (qp->req.late ? LATE_SHIFT : 0);
}

inline void timer_progress(struct eng_qp *qp, uint64_t now)
{
	struct requester *req = &qp->req;

	req->last_progress = now;
	solicit_stop(qp);
	req->retried = false;
	req->retries_left = qp->attr.retry_count;
	req->rnr_left = qp->attr.rnr_retry;
}

void timer_repeated_response(struct eng_qp *qp, uint64_t now)
{
	struct requester *req = &qp->req;

	if (req->repeats == 0)
		return;
	req->repeats--;
	req->late = true;
	req->last_progress = now;
}

void timer_sent_again(struct eng_qp *qp, uint64_t now)
{
	struct requester *req = &qp->req;

	if (req->taken_back || req->tlp.sent == 0)
		req->last_progress = now;
	req->taken_back = false;
}

enum eng_status timer_retry(struct eng_qp *qp, uint64_t now)
{
	struct requester *req = &qp->req;

	if (req->retries_left == 0) {
		count(qp, ENG_COUNT_RETRY_EXCEEDED);
		return ENG_RETRY_EXC_ERR;
	}
	req->retries_left--;
	req->last_progress = now;
	cwnd_loss(qp);
	tlp_stop(qp);
	sendqueue_go_back(qp);
	return ENG_SUCCESS;
}

bool timer_has_rnr_retries(const struct eng_qp *qp)
{
	return qp->attr.rnr_retry == 7 || qp->req.rnr_left > 0;
}

enum eng_status timer_rnr_nak(struct eng_qp *qp, uint8_t timer_code, uint64_t now)
{
	struct requester *req = &qp->req;

	count(qp, ENG_COUNT_RECEIVED_RNR);
	if (req->rnr_until > now)
		return ENG_SUCCESS;
	if (!timer_has_rnr_retries(qp)) {
		count(qp, ENG_COUNT_RNR_RETRY_EXCEEDED);
		return ENG_RNR_RETRY_EXC_ERR;
	}
	if (qp->attr.rnr_retry != 7)
		req->rnr_left--;
	req->credit.refusal_ns = rnr_timer_ns(timer_code);
	req->rnr_until = now + req->credit.refusal_ns;
	sendqueue_go_back(qp);
	return ENG_SUCCESS;
}

void timer_rnr_over(struct eng_qp *qp, uint64_t now)
{
	qp->req.rnr_until = 0;
	qp->req.last_progress = now;
}

uint64_t timer_deadline(const struct eng_qp *qp)
{
	const struct requester *req = &qp->req;
	uint64_t timeout, first, early;

	if (!can_request(qp) || !is_reliable(qp))
		return ENG_NEVER;
	if (req->rnr_until != 0)
		return req->rnr_until;
	if (!sendqueue_awaits_answer(qp) || qp->attr.timeout_code == 0)
		return credit_deadline(qp);
	timeout = timeout_ns(qp);
	first = req->last_progress + timeout;
	early = tlp_deadline(qp, timeout);
	if (early < first)
		first = early;
	early = solicit_deadline(qp);
	if (early < first)
		first = early;
	early = repair_deadline(qp);
	if (early < first)
		first = early;
	early = credit_deadline(qp);
	return early < first ? early : first;
}

uint64_t timer_deadline_least(const struct eng_qp *qp)
{
	const struct requester *req = &qp->req;
	uint64_t timeout;

	if (req->rnr_until != 0 || req->credit.waits_until != 0 || req->repair.follower_at != 0)
		return 0;
	if (!sendqueue_awaits_answer(qp) || qp->attr.timeout_code == 0)
		return ENG_NEVER;
	/* An ACK that is not under way may be due to be solicited. */
	if (!cwnd_ack_is_due(qp))
		return 0;
	timeout = ack_timeout_ns(qp->attr.timeout_code);
	return req->last_progress + (timeout < TLP_MIN_NS ? timeout : TLP_MIN_NS);
}

bool timer_is_over(const struct eng_qp *qp, uint64_t now)
{
	return can_request(qp) && is_reliable(qp) && qp->req.rnr_until == 0 &&
	       sendqueue_awaits_answer(qp) && qp->attr.timeout_code != 0 &&
	       now >= qp->req.last_progress + timeout_ns(qp);
}

enum eng_status timer_expire(struct eng_qp *qp, uint64_t now)
{
	struct requester *req = &qp->req;

	if (timer_deadline(qp) > now)
		return ENG_SUCCESS;
	if (req->rnr_until != 0) {
		timer_rnr_over(qp, now);
		/* Something else may be due as well. */
		return timer_expire(qp, now);
	}
	if (repair_deadline(qp) <= now) {
		repair_let_follow(qp);
		return timer_expire(qp, now);
	}
	if (credit_deadline(qp) <= now) {
		credit_wait_over(qp);
		return timer_expire(qp, now);
	}
	if (now < req->last_progress + timeout_ns(qp)) {
		if (solicit_deadline(qp) <= now)
			solicit_begin(qp);
		else
			tlp_begin(qp, timeout_ns(qp), now);
		return ENG_SUCCESS;
	}
	count(qp, ENG_COUNT_TIMEOUTS);
	req->retried = false;
	req->repeats += sendqueue_in_flight(qp);
	return timer_retry(qp, now);
}
