/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The send queue in PSNs and in entries: the cursors of struct requester, which the requester moves
 * forward and the completer moves up, and what happens to an entry at either end.
 */
#ifndef UROCE_ENGINE_TX_SQ_H
#define UROCE_ENGINE_TX_SQ_H

#include "engine/base/op.h"
#include "engine/qp_priv.h"

/* The QP has been given its sq_psn: start from there. */
void sq_start(struct eng_qp *qp, uint32_t sq_psn);

/* Number the entry just posted and move head on (rules S2, C11). */
void sq_push(struct eng_qp *qp);

/* The completion of wqe, which is about to leave the queue. */
void sq_complete(struct eng_qp *qp, const struct eng_send_wqe *wqe, enum eng_status status);
/*
 * The oldest request is done with: its last PSN is acknowledged, MSN has no say (rule S9).  Most
 * make no completion, but an error is always told (rule S13).
 */
static inline void sq_retire(struct eng_qp *qp, const struct eng_send_wqe *wqe,
			     enum eng_status status)
{
	struct requester *req = &qp->req;

	if (qp->sq->tail != req->begun && op_is_read_or_atomic(wqe->op))
		req->reads_outstanding--;
	if (status != ENG_SUCCESS || is_signaled(qp, wqe))
		sq_complete(qp, wqe, status);
	if (req->next_wqe == qp->sq->tail)
		req->next_wqe++;
	if (req->begun == qp->sq->tail)
		req->begun++;
	qp->sq->tail++;
}
/* Local requests that have been executed complete when all before them have. */
void sq_retire_local(struct eng_qp *qp);
/* Complete all posted send requests as flushed (rule S13). */
void sq_flush(struct eng_qp *qp);
/* SQD: tell that all that was begun is complete, once. */
void sq_raise_drained(struct eng_qp *qp);

/* Send again from unacked_psn on: a whole retry. */
void sq_go_back(struct eng_qp *qp);
/* Send again from psn on, which lies between unacked_psn and next_psn. */
void sq_rewind(struct eng_qp *qp, uint32_t psn);

/* The status of the oldest request if it has a local error, otherwise ENG_SUCCESS. */
static inline enum eng_status sq_error(const struct eng_qp *qp)
{
	if (qp->sq->tail == qp->sq->head)
		return ENG_SUCCESS;
	return (enum eng_status)sq_at(qp, qp->sq->tail)->status;
}

/* PSNs handed out and not acknowledged. */
static inline uint32_t sq_in_flight(const struct eng_qp *qp)
{
	return psn_sub(qp->req.end_psn, qp->req.unacked_psn);
}

/* Is any of them under way?  What has been gone back over, or could not be sent, is not. */
static inline bool sq_awaits_response(const struct eng_qp *qp)
{
	return qp->req.next_psn != qp->req.unacked_psn;
}

#endif
