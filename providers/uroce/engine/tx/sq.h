/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Send queue, in PSNs and in entries: the cursors of struct requester, which the requester advances
 * when it sends and the completer when packets are acknowledged, and the completion of entries.
 */
#ifndef UROCE_ENGINE_TX_SQ_H
#define UROCE_ENGINE_TX_SQ_H

#include "engine/base/op.h"
#include "engine/qp_priv.h"

/* Initializes the cursors for sq_psn. */
void sq_start(struct eng_qp *qp, uint32_t sq_psn);

/* Numbers the entry at head and advances head (rules S2, C11). */
void sq_push(struct eng_qp *qp);

/* Adds the completion of wqe, which the caller then removes. */
void sq_complete(struct eng_qp *qp, const struct eng_send_wqe *wqe, enum eng_status status);
/*
 * Removes the oldest request, whose last PSN is acknowledged; the MSN does not matter (rule S9).  A
 * success is completed only if the request is signaled, an error always (rule S13).
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
/* Completes executed local requests if all requests before them are complete. */
void sq_retire_local(struct eng_qp *qp);
/* Completes all posted requests as flushed (rule S13). */
void sq_flush(struct eng_qp *qp);
/* SQD: raises the event that all started requests are complete, once. */
void sq_raise_drained(struct eng_qp *qp);

/* Goes back to unacked_psn: all packets in flight are sent again. */
void sq_go_back(struct eng_qp *qp);
/* Goes back to psn, which must lie between unacked_psn and next_psn. */
void sq_rewind(struct eng_qp *qp, uint32_t psn);

/* Returns the status of the oldest request if it has a local error, otherwise ENG_SUCCESS. */
static inline enum eng_status sq_error(const struct eng_qp *qp)
{
	if (qp->sq->tail == qp->sq->head)
		return ENG_SUCCESS;
	return (enum eng_status)sq_at(qp, qp->sq->tail)->status;
}

/* Number of PSNs that have been used and not acknowledged. */
static inline uint32_t sq_in_flight(const struct eng_qp *qp)
{
	return psn_sub(qp->req.end_psn, qp->req.unacked_psn);
}

/* Returns true if packets are in flight, not counting those that are about to be sent again. */
static inline bool sq_awaits_response(const struct eng_qp *qp)
{
	return qp->req.next_psn != qp->req.unacked_psn;
}

#endif
