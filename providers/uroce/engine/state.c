/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "state.h"

#include <string.h>

#include "cwnd.h"
#include "early.h"
#include "ecn.h"
#include "replay.h"
#include "responder.h"
#include "sendqueue.h"

/* By request or by error: nothing is sent any more but a NAK that is owed. */
static void enter_error(struct eng_qp *qp)
{
	if (qp->state == ENG_ERR)
		return;
	qp->state = ENG_ERR;
	qp->resp.ack_owed = false;
	early_forget(qp);
	/* rule S13: all that is posted completes as flushed, in order. */
	sendqueue_flush(qp);
	responder_flush(qp);
	if (qp->rq_shared)
		qp->ops->event(qp->owner, ENG_EVENT_LAST_WQE_REACHED);
}

/* It is no fault of the peer's, which hears nothing more: no answer and no NAK owed before. */
static void enter_error_silently(struct eng_qp *qp)
{
	replay_cancel(qp);
	qp->resp.nak = NAK_STATE_NONE;
	ecn_forget(qp);
	enter_error(qp);
}

/*
 * A request of its own has failed.  The peer gets the ACK of what it has sent, which may have
 * waited to ride behind data; but not ahead of an answer to a READ, which it would not get any
 * more.
 */
static void fail_request(struct eng_qp *qp)
{
	bool may_acknowledge = can_respond(qp) && qp->resp.replay_pending == 0;

	enter_error_silently(qp);
	if (may_acknowledge)
		responder_owe_last_ack(qp);
}

void state_fail(struct eng_qp *qp, enum eng_status verdict)
{
	if (verdict == ENG_WR_FLUSH_ERR) {
		enter_error(qp);
		return;
	}
	sendqueue_retire(qp, sq_at(qp, qp->sq->tail), verdict);
	if (is_reliable(qp)) {
		fail_request(qp);
		return;
	}
	qp->state = ENG_SQE;
	sendqueue_flush(qp);
}

/* rule C5: nothing is left of what was; the rings are empty. */
static void forget(struct eng_qp *qp)
{
	cwnd_emptied(qp);
	early_forget(qp);
	memset(&qp->req, 0, sizeof(qp->req));
	memset(&qp->resp, 0, sizeof(qp->resp));
	replay_cancel(qp);
	memset(&qp->schedule, 0, sizeof(qp->schedule));
	qp->schedule.since_post = SCHEDULE_NO_POST;
	ecn_forget(qp);
	qp->resp.previous_opcode = -1;
	qp->sq->head = 0;
	qp->sq->tail = 0;
	if (!qp->rq_shared) {
		qp->rq->head = 0;
		qp->rq->tail = 0;
	}
	cwnd_reset(qp);
}

void eng_set_state(struct eng_qp *qp, enum eng_qp_state to, uint64_t now)
{
	enum eng_qp_state from = qp->state;

	if (to == ENG_ERR) {
		enter_error_silently(qp);
		return;
	}
	qp->state = to;
	if (to == ENG_RESET) {
		forget(qp);
	} else if (to == ENG_RTR && from == ENG_INIT) {
		responder_start(qp, qp->attr.rq_psn, now);
	} else if (to == ENG_RTS && from == ENG_RTR) {
		sendqueue_start(qp, qp->attr.sq_psn);
		cwnd_reset(qp);
	} else if (to == ENG_SQD && from == ENG_RTS) {
		qp->req.drained_told = false;
		sendqueue_tell_drained(qp);
	}
}
