/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "ack_req.h"

#include "engine/base/op.h"
#include "engine/base/types.h"
#include "engine/cc/cc.h"
#include "engine/cc/cwnd.h"
#include "engine/credit.h"
#include "engine/tx/pkt_hdr.h"
#include "engine/tx/sq.h"
#include "engine/tx/tx_build.h"

/* At least one of this number of packets in flight has AckReq. */
#define PACKETS_PER_ACKREQ 8
/* With credits for at most this number of further messages, each message has AckReq. */
#define FEW_CREDITS 16

struct ack_req_ctx ack_req_read(const struct eng_qp *qp, uint64_t now)
{
	return (struct ack_req_ctx){
		.now = now,
		.contended = budget_is_contended(qp),
		.may_be_late = loss_has_probes(qp) && qp->state == ENG_RTS &&
			       now >= qp->req.loss.lossy_until,
	};
}

/* Returns true if this is the last packet of the burst. */
static bool ends_burst(const struct eng_burst *burst, uint32_t bytes)
{
	return (burst->packets > 0 && bytes < burst->segment) ||
	       burst->packets + 1 >= burst->max_packets ||
	       burst->bytes + 2 * bytes > burst->max_bytes;
}

/*
 * Returns true if wqe should request an ACK so that new credits are reported before the known ones
 * are used up (rule C10).
 */
static bool credits_run_low(const struct eng_qp *qp, const struct eng_send_wqe *wqe)
{
	const struct credit *credit = &qp->req.credit;

	return op_row(wqe->op)->needs_receive && credit->report != CREDIT_REPORT_UNLIMITED &&
	       psn_diff(credit->lsn, wqe->ssn) < FEW_CREDITS;
}

/*
 * For packets while no AckReq is in flight: returns true if one is needed, because of the number of
 * packets, the send queue (half full) or the time.
 */
static bool is_overdue(const struct eng_qp *qp, uint64_t now)
{
	const struct requester *req = &qp->req;
	uint32_t in_flight = sq_in_flight(qp);

	return in_flight + 1 >= PACKETS_PER_ACKREQ || 2 * eng_ring_used(qp->sq) >= qp->sq->limit ||
	       (in_flight > 0 && elapsed(req->last_progress, now) >= ACK_PROBE_AFTER_NS / 2);
}

/*
 * Retransmitted messages have AckReq, and so has every message while other QPs have packets in
 * flight: without it the in-flight budget of the message would be released only after a later
 * packet or an ACK probe.
 */
bool ack_req_is_set(const struct eng_qp *qp, const struct eng_burst *burst,
		    const struct eng_send_wqe *wqe, uint32_t index, uint32_t bytes, uint64_t cost,
		    const struct ack_req_ctx *ack_ctx)
{
	const struct requester *req = &qp->req;
	bool last = index == wqe->packets - 1;

	if (op_is_read_or_atomic(wqe->op) || cwnd_closes(qp, cost))
		return true;
	if (last && (ack_ctx->contended || !ack_ctx->may_be_late || is_signaled(qp, wqe) ||
		     req->next_psn != req->end_psn || credits_run_low(qp, wqe)))
		return true;
	if (ack_ctx->contended && ends_burst(burst, bytes))
		return true;
	/* Rule C13: the first packet of a limited request has AckReq. */
	if (index == 0 && credit_limited(qp, wqe))
		return true;
	return cc_acks_every_packet(qp) || (!ack_req_in_flight(qp) && is_overdue(qp, ack_ctx->now));
}

/* Returns true if the next request has a local error; it fails once those before it complete. */
static bool next_has_error(const struct eng_qp *qp)
{
	return qp->req.next_wqe != qp->sq->head &&
	       sq_at(qp, qp->req.next_wqe)->status != ENG_SUCCESS;
}

bool ack_probe_is_urgent(const struct eng_qp *qp)
{
	const struct requester *req = &qp->req;
	const struct eng_send_wqe *last;

	if (qp->state == ENG_SQD || next_has_error(qp))
		return true;
	if (req->begun == qp->sq->tail)
		return false;
	/* A local request completes after the requests before it. */
	last = sq_at(qp, req->begun - 1);
	return op_is_local(last->op) && is_signaled(qp, last);
}

bool ack_probe_is_due(const struct eng_qp *qp)
{
	const struct requester *req = &qp->req;

	return req->unacked_psn != req->next_psn && !ack_req_in_flight(qp) &&
	       (req->next_psn == req->end_psn || next_has_error(qp));
}

/*
 * The response to an ACK probe arrives after the ACKs of earlier packets with AckReq.  If only
 * these have arrived, the response is still in flight.  Any further progress of SENDs and WRITEs is
 * due to the response, so that another probe may follow; progress of READs may be due to earlier
 * responses.
 */
static void count_ack_repeat(struct eng_qp *qp)
{
	struct requester *req = &qp->req;

	if (op_is_read_or_atomic(sq_at(qp, qp->sq->tail)->op))
		req->repeated_psn = req->end_psn;
	else if (psn_diff(req->unacked_psn, req->repeated_psn) > 0)
		req->repeated_psn = req->unacked_psn;
	req->ack_probe_psn = psn_add(req->ackreq_psn, 1);
}

void ack_probe_begin(struct eng_qp *qp, uint64_t now)
{
	loss_act(qp, LOSS_ACTION_ACK_PROBE, now);
	qp->req.loss.ack_probe_at = now;
	count_ack_repeat(qp);
	count(qp, ENG_COUNT_ACK_PROBES);
}

void ack_probe_transmit(struct eng_qp *qp, struct eng_burst *burst)
{
	uint32_t psn = psn_sub(qp->req.unacked_psn, 1);
	uint8_t *at = tx_build_reserve(burst, 0);

	burst->kind = ENG_BURST_ACK_PROBE;
	burst->first_psn = psn;
	if (at && tx_build_add_header_only(burst, message_ack_probe(qp, psn, at)) == TX_BUILD_OK)
		qp->req.loss.action = LOSS_ACTION_NONE;
}
