/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "solicit.h"

#include "codes.h"
#include "credit.h"
#include "cwnd.h"
#include "interval.h"
#include "message.h"
#include "op.h"
#include "packer.h"
#include "sendqueue.h"

/* Of so many packets in flight at least one has AckReq. */
#define PACKETS_PER_ACKREQ 8
/* When the credits allow no more than so many further messages, each has AckReq. */
#define FEW_CREDITS 16
/*
 * After so long without progress an ACK is solicited.  A peer that ends sooner after our last
 * message may leave it without an ACK.
 */
#define SOLICIT_AFTER_NS UINT64_C(1000000)
/*
 * The same while more is to be sent: that will have AckReq, and waits only for other QPs to make
 * room.
 */
#define SOLICIT_BETWEEN_NS (8 * SOLICIT_AFTER_NS)
/* So many solicitations must fit into the Local ACK Timeout, or every message has AckReq. */
#define SOLICITS_PER_TIMEOUT 16

/* Is there time to solicit an ACK later, and may packets be sent again at all? */
static bool has_time(const struct eng_qp *qp)
{
	return qp->attr.retry_count > 0 && qp->attr.timeout_code > 0 &&
	       ack_timeout_ns(qp->attr.timeout_code) >= SOLICITS_PER_TIMEOUT * SOLICIT_AFTER_NS;
}

struct solicit_facts solicit_look(const struct eng_qp *qp, uint64_t now)
{
	return (struct solicit_facts){
		.now = now,
		.contended = cwnd_share_is_contended(qp),
		.may_be_late =
			has_time(qp) && qp->state == ENG_RTS && now >= qp->req.tlp.lossy_until,
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

	return op_row(wqe->op)->needs_receive && !credit->unlimited &&
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
	return req->network.clocked || (!cwnd_ack_is_due(qp) && is_overdue(qp, facts->now));
}

/* A request with a local error: it fails when those before it are complete. */
static bool next_has_error(const struct eng_qp *qp)
{
	return qp->req.next_wqe != qp->sq->head &&
	       sq_at(qp, qp->req.next_wqe)->status != ENG_SUCCESS;
}

/* Does the application wait for what is under way, without a signal of its own? */
static bool is_waited_for(const struct eng_qp *qp)
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

uint64_t solicit_deadline(const struct eng_qp *qp)
{
	const struct requester *req = &qp->req;
	uint64_t delay;

	/* What is being sent again will have AckReq, if it can be sent. */
	if (req->unacked_psn == req->next_psn ||
	    (req->next_psn != req->end_psn && !next_has_error(qp)) || cwnd_ack_is_due(qp) ||
	    !has_time(qp) || req->solicit_owed)
		return ENG_NEVER;
	if (req->solicits == 0 && is_waited_for(qp))
		return req->last_progress;
	delay = (req->next_wqe == qp->sq->head ? SOLICIT_AFTER_NS : SOLICIT_BETWEEN_NS)
		<< req->solicits;
	return delay < ack_timeout_ns(qp->attr.timeout_code) ? req->last_progress + delay
							     : ENG_NEVER;
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

void solicit_begin(struct eng_qp *qp)
{
	qp->req.solicit_owed = true;
	note_repeated(qp);
	qp->req.solicits++;
	count(qp, ENG_COUNT_SOLICITATIONS);
}

bool solicit_add(struct eng_qp *qp, struct eng_burst *burst)
{
	uint32_t psn = psn_sub(qp->req.unacked_psn, 1);
	uint8_t *at = pack_place(burst, 0);

	return at && pack_bare(burst, message_solicitation(qp, psn, at)) == PACK_DONE;
}

void solicit_transmit(struct eng_qp *qp, struct eng_burst *burst)
{
	burst->kind = ENG_BURST_SOLICITATION;
	burst->first_psn = psn_sub(qp->req.unacked_psn, 1);
	if (solicit_add(qp, burst))
		qp->req.solicit_owed = false;
}
