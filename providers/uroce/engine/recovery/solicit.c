/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "engine/recovery/solicit.h"

#include "engine/credit.h"
#include "engine/cwnd.h"
#include "engine/interval.h"
#include "engine/law.h"
#include "engine/message.h"
#include "engine/op.h"
#include "engine/packer.h"
#include "engine/sendqueue.h"

/* Of so many packets in flight at least one has AckReq. */
#define PACKETS_PER_ACKREQ 8
/* When the credits allow no more than so many further messages, each has AckReq. */
#define FEW_CREDITS 16

struct solicit_facts solicit_look(const struct eng_qp *qp, uint64_t now)
{
	return (struct solicit_facts){
		.now = now,
		.contended = cwnd_share_is_contended(qp),
		.may_be_late = loss_has_probes(qp) && qp->state == ENG_RTS &&
			       now >= qp->req.loss.lossy_until,
	};
}

/* Is this the last packet of the burst?  The next burst may have to wait for other QPs. */
static bool ends_burst(const struct eng_burst *burst, uint32_t bytes)
{
	return (burst->packets > 0 && bytes < burst->segment) ||
	       burst->packets + 1 >= burst->max_packets ||
	       burst->bytes + 2 * bytes > burst->max_bytes;
}

/* rule C10: new credits should be reported before the known ones are used up. */
static bool credits_run_low(const struct eng_qp *qp, const struct eng_send_wqe *wqe)
{
	const struct credit *credit = &qp->req.credit;

	return op_row(wqe->op)->needs_receive && credit->report != CREDIT_REPORT_UNLIMITED &&
	       psn_diff(credit->lsn, wqe->ssn) < FEW_CREDITS;
}

/*
 * No ACK is due: is it time for AckReq, or are there enough packets, or is the send queue half
 * full?
 */
static bool is_overdue(const struct eng_qp *qp, uint64_t now)
{
	const struct requester *req = &qp->req;
	uint32_t in_flight = sendqueue_in_flight(qp);

	return in_flight + 1 >= PACKETS_PER_ACKREQ || 2 * eng_ring_used(qp->sq) >= qp->sq->limit ||
	       (in_flight > 0 && elapsed(req->last_progress, now) >= SOLICIT_AFTER_NS / 2);
}

/*
 * While other QPs are at work no message goes without AckReq: they may get what room there is, and
 * then this one could not ask, and they not have the room that it holds.  Nor does what is sent
 * again.
 */
bool solicit_sets_ackreq(const struct eng_qp *qp, const struct eng_burst *burst,
			 const struct eng_send_wqe *wqe, uint32_t index, uint32_t bytes,
			 uint64_t cost, const struct solicit_facts *facts)
{
	const struct requester *req = &qp->req;
	bool last = index == wqe->packets - 1;

	if (op_is_read_or_atomic(wqe->op) || cwnd_closes(qp, cost))
		return true;
	if (last && (facts->contended || !facts->may_be_late || is_signaled(qp, wqe) ||
		     req->next_psn != req->end_psn || credits_run_low(qp, wqe)))
		return true;
	if (facts->contended && ends_burst(burst, bytes))
		return true;
	/* rule C13 */
	if (index == 0 && credit_limited(qp, wqe))
		return true;
	return law_is_clocked(qp) || (!cwnd_ack_is_due(qp) && is_overdue(qp, facts->now));
}

/* A request with a local error: it fails when those before it are complete. */
static bool next_has_error(const struct eng_qp *qp)
{
	return qp->req.next_wqe != qp->sq->head &&
	       sq_at(qp, qp->req.next_wqe)->status != ENG_SUCCESS;
}

bool solicit_is_awaited(const struct eng_qp *qp)
{
	const struct requester *req = &qp->req;
	const struct eng_send_wqe *last;

	if (qp->state == ENG_SQD || next_has_error(qp))
		return true;
	if (req->begun == qp->sq->tail)
		return false;
	/* A local request completes behind those before it. */
	last = sq_at(qp, req->begun - 1);
	return op_is_local(last->op) && is_signaled(qp, last);
}

bool solicit_is_due(const struct eng_qp *qp)
{
	const struct requester *req = &qp->req;

	return req->unacked_psn != req->next_psn && !cwnd_ack_is_due(qp) &&
	       (req->next_psn == req->end_psn || next_has_error(qp));
}

/*
 * The answer to a solicitation comes behind the ACKs that had been asked for before.  When just
 * these have come it is still on its way; other progress of SENDs and WRITEs has been brought by
 * it, so that the next one may be solicited.  That of READs may have come sooner.
 */
static void note_repeated(struct eng_qp *qp)
{
	struct requester *req = &qp->req;

	if (op_is_read_or_atomic(sq_at(qp, qp->sq->tail)->op))
		req->repeated_psn = req->end_psn;
	else if (psn_diff(req->unacked_psn, req->repeated_psn) > 0)
		req->repeated_psn = req->unacked_psn;
	req->solicited_psn = psn_add(req->ackreq_psn, 1);
}

void solicit_begin(struct eng_qp *qp, uint64_t now)
{
	loss_act(qp, LOSS_ACTION_SOLICIT, now);
	qp->req.loss.solicited_at = now;
	note_repeated(qp);
	count(qp, ENG_COUNT_SOLICITATIONS);
}

void solicit_transmit(struct eng_qp *qp, struct eng_burst *burst)
{
	uint32_t psn = psn_sub(qp->req.unacked_psn, 1);
	uint8_t *at = pack_place(burst, 0);

	burst->kind = ENG_BURST_SOLICITATION;
	burst->first_psn = psn;
	if (at && pack_bare(burst, message_solicitation(qp, psn, at)) == PACK_DONE)
		qp->req.loss.action = LOSS_ACTION_NONE;
}
