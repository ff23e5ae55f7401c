/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "engine/recovery/loss.h"

#include <assert.h>

#include "engine/base/aeth.h"
#include "engine/cc/cwnd.h"
#include "engine/credit.h"
#include "engine/recovery/probe.h"
#include "engine/tx/sq.h"

/*
 * After a late response the timeout is four times the Local ACK Timeout, the specification's
 * maximum.
 */
#define LATE_SHIFT 2

/*
 * After this number of timeouts without progress, the peer may be a process that waits for a CPU,
 * for more than half a second on a host with many processes.  The next ones are as long as after a
 * late response, but not extended beyond code EXTENDED_CODE_MAX (268 ms): longer timeouts allow for
 * such a wait already.
 */
#define EXTEND_AFTER_TIMEOUTS 2
#define EXTENDED_CODE_MAX 16

/*
 * Time after the first of the timeouts without progress in which retries can be restored; longer
 * than a host takes to replace a broker.
 */
#define RESTORE_MAX_NS UINT64_C(10000000000)

static uint8_t extended_code(uint8_t code)
{
	if (code >= EXTENDED_CODE_MAX)
		return code;
	return code + LATE_SHIFT < EXTENDED_CODE_MAX ? code + LATE_SHIFT : EXTENDED_CODE_MAX;
}

static uint64_t timeout_ns(const struct eng_qp *qp)
{
	const struct requester *req = &qp->req;
	uint8_t code = qp->attr.timeout_code;

	if (req->loss.timeout_shift)
		return ack_timeout_ns(code) << req->loss.timeout_shift;
	if (req->retries.timeouts >= EXTEND_AFTER_TIMEOUTS)
		code = extended_code(code);
	return ack_timeout_ns(code);
}

static __attribute__((noinline)) void progress_after_silence(struct eng_qp *qp)
{
	struct loss *loss = &qp->req.loss;

	loss->ack_probe_at = 0;
	loss->resume = LOSS_OPEN;
	/* Among many losses no round trip may be measured, which would end the back-off. */
	if (loss->probes > 0 && qp->path_loss == ENG_PATH_LOSSY)
		loss->probes--;
	if (loss->action == LOSS_ACTION_ACK_PROBE)
		loss->action = LOSS_ACTION_NONE;
	if (loss->state == LOSS_GO_BACK || loss->state == LOSS_PROBE)
		loss_enter(qp, LOSS_OPEN);
}

inline void loss_progress(struct eng_qp *qp, uint64_t now)
{
	struct requester *req = &qp->req;

	req->last_progress = now;
	req->retries = (struct retries){ 0 };
	if (req->loss.probes > 0 || req->loss.state != LOSS_OPEN)
		progress_after_silence(qp);
}

void loss_restore_retries(struct eng_qp *qp, uint64_t now)
{
	struct requester *req = &qp->req;

	if (req->retries.timeouts == 0 || now < req->first_timeout + RESTORE_MAX_NS)
		req->retries.used = 0;
}

void loss_repeated_response(struct eng_qp *qp, uint64_t now)
{
	struct requester *req = &qp->req;

	if (req->repeats == 0)
		return;
	req->repeats--;
	req->loss.timeout_shift = LATE_SHIFT;
	req->last_progress = now;
}

void loss_sent_again(struct eng_qp *qp, uint64_t now)
{
	if (qp->req.loss.state != LOSS_PROBE)
		qp->req.last_progress = now;
}

/* Uses up a retry and goes back to unacked_psn in state to; fails if no retry is left. */
static enum eng_status retry(struct eng_qp *qp, enum loss_state to, uint64_t now)
{
	struct requester *req = &qp->req;

	if (retries_left(qp) == 0) {
		count(qp, ENG_COUNT_RETRY_EXCEEDED);
		return ENG_RETRY_EXC_ERR;
	}
	req->retries.used++;
	req->last_progress = now;
	cwnd_loss(qp);
	req->loss.lossy_until = 0;
	req->loss.probes = 0;
	req->loss.ack_probe_at = 0;
	req->loss.resume = LOSS_OPEN;
	loss_go_back(qp, to);
	return ENG_SUCCESS;
}

static bool waits_for_rnr(const struct eng_qp *qp, uint64_t now)
{
	return qp->req.loss.state == LOSS_RNR_WAIT && qp->req.loss.rnr_until > now;
}

/* Returns true if all packets have been sent again for a NAK, and nothing was answered since. */
static bool has_gone_back(const struct loss *loss)
{
	return loss->state == LOSS_GO_BACK ||
	       (loss->state == LOSS_PROBE && loss->resume == LOSS_GO_BACK);
}

enum eng_status loss_nak(struct eng_qp *qp, uint64_t now)
{
	enum eng_status verdict;

	if (waits_for_rnr(qp, now))
		return ENG_SUCCESS;
	if (qp->req.loss.state == LOSS_RNR_WAIT)
		loss_rnr_over(qp, now);
	if (has_gone_back(&qp->req.loss))
		return ENG_SUCCESS;
	count(qp, ENG_COUNT_COMPLETER_RETRY);
	verdict = retry(qp, LOSS_GO_BACK, now);
	loss_reported(qp, now);
	return verdict;
}

bool loss_has_rnr_retries(const struct eng_qp *qp)
{
	return qp->attr.rnr_retry == 7 || rnr_retries_left(qp) > 0;
}

enum eng_status loss_rnr_nak(struct eng_qp *qp, uint8_t timer_code, uint64_t now)
{
	struct requester *req = &qp->req;

	count(qp, ENG_COUNT_RECEIVED_RNR);
	if (waits_for_rnr(qp, now))
		return ENG_SUCCESS;
	if (!loss_has_rnr_retries(qp)) {
		count(qp, ENG_COUNT_RNR_RETRY_EXCEEDED);
		return ENG_RNR_RETRY_EXC_ERR;
	}
	if (qp->attr.rnr_retry != 7)
		req->retries.rnr_used++;
	req->credit.last_rnr_ns = rnr_timer_ns(timer_code);
	if (req->loss.state == LOSS_RNR_WAIT)
		loss_rnr_over(qp, now);
	req->loss.resume = has_gone_back(&req->loss) ? LOSS_GO_BACK : LOSS_OPEN;
	/* Starts the RNR NAK timer. */
	req->loss.rnr_until = now + req->credit.last_rnr_ns;
	loss_go_back(qp, LOSS_RNR_WAIT);
	return ENG_SUCCESS;
}

void loss_rnr_over(struct eng_qp *qp, uint64_t now)
{
	loss_enter(qp, qp->req.loss.resume);
	qp->req.last_progress = now;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t loss_deadline(const struct eng_qp *qp)
{
	const struct requester *req = &qp->req;
	uint64_t timeout;

	if (!can_request(qp) || !is_reliable(qp))
		return ENG_NEVER;
	if (req->loss.state == LOSS_RNR_WAIT)
		return req->loss.rnr_until;
	if (!sq_awaits_response(qp) || qp->attr.timeout_code == 0)
		return credit_deadline(qp);
	timeout = timeout_ns(qp);
	return earlier(earlier(req->last_progress + timeout, probe_deadline(qp, timeout)),
		       credit_deadline(qp));
}

uint64_t loss_deadline_least(const struct eng_qp *qp)
{
	const struct requester *req = &qp->req;
	uint64_t timeout;

	if (req->loss.state == LOSS_RNR_WAIT || req->credit.wait_deadline != 0)
		return 0;
	if (!sq_awaits_response(qp) || qp->attr.timeout_code == 0)
		return ENG_NEVER;
	/* Without AckReq in flight an ACK probe may be due earlier. */
	if (!ack_req_in_flight(qp))
		return 0;
	timeout = ack_timeout_ns(qp->attr.timeout_code);
	return req->last_progress + earlier(timeout, RTT_GRANULARITY_NS);
}

bool loss_times_out(const struct eng_qp *qp, uint64_t now)
{
	return can_request(qp) && is_reliable(qp) && qp->req.loss.state != LOSS_RNR_WAIT &&
	       sq_awaits_response(qp) && qp->attr.timeout_code != 0 &&
	       now >= qp->req.last_progress + timeout_ns(qp);
}

enum eng_status loss_expire(struct eng_qp *qp, uint64_t now)
{
	struct requester *req = &qp->req;

	if (loss_deadline(qp) > now)
		return ENG_SUCCESS;
	if (req->loss.state == LOSS_RNR_WAIT) {
		loss_rnr_over(qp, now);
		/* Something else may be due as well. */
		return loss_expire(qp, now);
	}
	if (credit_deadline(qp) <= now) {
		credit_wait_expired(qp);
		return loss_expire(qp, now);
	}
	if (!loss_times_out(qp, now)) {
		probe_send(qp, now);
		return ENG_SUCCESS;
	}
	count(qp, ENG_COUNT_TIMEOUTS);
	if (req->retries.timeouts == 0)
		req->first_timeout = now;
	if (req->retries.timeouts < EXTEND_AFTER_TIMEOUTS)
		req->retries.timeouts++;
	req->repeats += sq_in_flight(qp);
	return retry(qp, LOSS_OPEN, now);
}
