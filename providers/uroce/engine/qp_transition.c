/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "qp_transition.h"

#include <string.h>

#include "engine/cc/cwnd.h"
#include "engine/cc/ecn.h"
#include "engine/rx/ooo_rx.h"
#include "engine/rx/resp_res.h"
#include "engine/rx/responder.h"
#include "engine/tx/sq.h"

/*
 * Enters ERR by request or by error: from now on only a pending NAK, and responses to requests
 * before it, are sent.
 */
static void enter_error(struct eng_qp *qp)
{
	if (qp->state == ENG_ERR)
		return;
	qp->state = ENG_ERR;
	qp->resp.ack_pending = false;
	ooo_flush(qp);
	/* rule S13: all posted requests complete as flushed, in order. */
	sq_flush(qp);
	responder_flush(qp);
	if (qp->rq_shared)
		qp->ops->event(qp->owner, ENG_EVENT_LAST_WQE_REACHED);
}

/*
 * Enters ERR without an error of the peer, which gets no more packets: pending responses and NAKs
 * are dropped.
 */
static void enter_error_silently(struct eng_qp *qp)
{
	resp_res_cancel(qp);
	qp->resp.nak = NAK_STATE_NONE;
	ecn_reset(qp);
	enter_error(qp);
}

/*
 * Enters ERR after a request of our own has failed.  The peer gets the pending ACK, which may have
 * been delayed for data; but not ahead of a READ response, which would not be sent any more.
 */
static void fail_request(struct eng_qp *qp)
{
	bool may_acknowledge = can_respond(qp) && qp->resp.resp_res_pending == 0;

	enter_error_silently(qp);
	if (may_acknowledge)
		responder_request_last_ack(qp);
}

void qp_fail(struct eng_qp *qp, enum eng_status verdict)
{
	if (verdict == ENG_WR_FLUSH_ERR) {
		enter_error(qp);
		return;
	}
	sq_retire(qp, sq_at(qp, qp->sq->tail), verdict);
	if (is_reliable(qp)) {
		fail_request(qp);
		return;
	}
	qp->state = ENG_SQE;
	sq_flush(qp);
}

/* rule C5: resets everything; the rings are empty. */
static void reset_qp(struct eng_qp *qp)
{
	cwnd_reset_inflight(qp);
	ooo_flush(qp);
	memset(&qp->req, 0, sizeof(qp->req));
	memset(&qp->resp, 0, sizeof(qp->resp));
	resp_res_cancel(qp);
	memset(&qp->tx_sched, 0, sizeof(qp->tx_sched));
	qp->tx_sched.since_post = TX_SCHED_NO_POST;
	ecn_reset(qp);
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
		reset_qp(qp);
	} else if (to == ENG_RTR && from == ENG_INIT) {
		responder_start(qp, qp->attr.rq_psn, now);
	} else if (to == ENG_RTS && from == ENG_RTR) {
		sq_start(qp, qp->attr.sq_psn);
		cwnd_reset(qp);
	} else if (to == ENG_SQD && from == ENG_RTS) {
		qp->req.drained_reported = false;
		sq_raise_drained(qp);
	}
}
