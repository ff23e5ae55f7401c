/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "sq.h"

#include <assert.h>
#include <string.h>

#include "engine/base/op.h"
#include "engine/cc/cwnd.h"
#include "pkt_hdr.h"

void sq_start(struct eng_qp *qp, uint32_t sq_psn)
{
	struct requester *req = &qp->req;

	req->next_psn = sq_psn & PSN_MASK;
	req->end_psn = req->next_psn;
	req->unacked_psn = req->next_psn;
	req->ackreq_psn = psn_sub(req->next_psn, 1);
	req->repeated_psn = psn_sub(req->next_psn, 1);
	req->post_psn = req->next_psn;
	req->retries = (struct retries){ 0 };
	/*
	 * rule C1: credits exist on reliable connections only; there an ACK may have reported some
	 * before RTS (rule C9), which are kept.
	 */
	if (!is_reliable(qp))
		req->credit.report = CREDIT_REPORT_UNLIMITED;
}

inline void sq_push(struct eng_qp *qp)
{
	struct requester *req = &qp->req;
	struct eng_send_wqe *wqe = sq_at(qp, qp->sq->head);

	assert(!eng_ring_full(qp->sq));
	wqe->status = ENG_SUCCESS;
	wqe->first_psn = req->post_psn;
	wqe->packets = 1;
	/* In ERR the request is flushed, not sent, and the QP may not have an MTU. */
	if (wqe->length > qp->attr.mtu && op_row(wqe->op)->any_length && qp->type != ENG_UD &&
	    can_request(qp))
		wqe->packets = message_packets(wqe->length, qp->attr.mtu);
	/* rule C11: the peer counts received requests, so local requests have no SSN. */
	if (op_is_local(wqe->op)) {
		wqe->packets = 0;
	} else {
		req->posted_ssn = psn_add(req->posted_ssn, 1);
		req->posted_uncredited += !op_row(wqe->op)->needs_receive;
	}
	wqe->ssn = req->posted_ssn;
	wqe->uncredited = req->posted_uncredited;
	req->post_psn = psn_add(req->post_psn, wqe->packets);
	qp->sq->head++;
}

void sq_complete(struct eng_qp *qp, const struct eng_send_wqe *wqe, enum eng_status status)
{
	struct eng_wc wc = {
		.wr_id = wqe->wr_id,
		.status = status,
		.op = (enum eng_op)wqe->op,
		.byte_len = wqe->length,
		/* Errors also wake an application that waits for solicited completions only. */
		.solicited = status != ENG_SUCCESS,
	};

	qp->ops->complete(qp->owner, &wc);
}

void sq_retire_local(struct eng_qp *qp)
{
	while (qp->sq->tail != qp->req.begun) {
		const struct eng_send_wqe *wqe = sq_at(qp, qp->sq->tail);

		if (!op_is_local(wqe->op))
			return;
		sq_retire(qp, wqe, ENG_SUCCESS);
	}
}

void sq_raise_drained(struct eng_qp *qp)
{
	struct requester *req = &qp->req;

	if (qp->state != ENG_SQD || req->drained_reported || qp->sq->tail != req->begun)
		return;
	req->drained_reported = true;
	if (qp->attr.sq_drained_event)
		qp->ops->event(qp->owner, ENG_EVENT_SQ_DRAINED);
}

void sq_flush(struct eng_qp *qp)
{
	struct requester *req = &qp->req;

	while (qp->sq->tail != qp->sq->head)
		sq_retire(qp, sq_at(qp, qp->sq->tail), ENG_WR_FLUSH_ERR);
	/* Nothing is in flight any more; requests posted later continue from here (SQE to RTS). */
	cwnd_reset_inflight(qp);
	req->loss.action = LOSS_ACTION_NONE;
	req->loss.state = LOSS_OPEN;
	if (req->read_retry.count > 0)
		memset(&req->read_retry, 0, sizeof(req->read_retry));
	req->post_psn = req->end_psn;
	req->unacked_psn = req->end_psn;
	req->next_psn = req->end_psn;
}

void sq_rewind(struct eng_qp *qp, uint32_t psn)
{
	struct requester *req = &qp->req;

	while (req->next_psn != psn) {
		const struct eng_send_wqe *wqe;
		uint32_t index, from;

		/*
		 * At the start of a message the packets before next_psn are those of the message
		 * before it.
		 */
		if (req->next_wqe == qp->sq->head ||
		    req->next_psn == sq_at(qp, req->next_wqe)->first_psn)
			req->next_wqe--;
		wqe = sq_at(qp, req->next_wqe);
		index = wqe_packet_index(wqe, req->next_psn);
		from = psn_in(psn, wqe->first_psn, wqe->packets) ? wqe_packet_index(wqe, psn) : 0;
		cwnd_rollback(qp, cwnd_cost_between(qp, wqe, from, index));
		req->next_psn = psn_add(wqe->first_psn, from);
	}
	/* It is unknown which packet before psn had AckReq, so the next packet gets AckReq. */
	if (psn_diff(req->ackreq_psn, req->next_psn) >= 0)
		req->ackreq_psn = psn_sub(req->unacked_psn, 1);
}

void sq_go_back(struct eng_qp *qp)
{
	struct requester *req = &qp->req;

	req->next_psn = req->unacked_psn;
	req->ackreq_psn = psn_sub(req->unacked_psn, 1);
	req->repeated_psn = req->end_psn;
	req->next_wqe = qp->sq->tail;
	req->loss.action = LOSS_ACTION_NONE;
	/* Placed responses stay placed; all others are requested again in order. */
	req->read_retry.rx_max_psn = req->unacked_psn;
	req->read_retry.requested_psn = req->unacked_psn;
	cwnd_reset_inflight(qp);
}
