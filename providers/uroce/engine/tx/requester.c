/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "requester.h"

#include "engine/base/op.h"
#include "engine/base/sge.h"
#include "engine/cc/cc.h"
#include "engine/cc/cwnd.h"
#include "engine/credit.h"
#include "engine/recovery/ack_req.h"
#include "engine/recovery/loss.h"
#include "engine/recovery/read_retry.h"
#include "engine/recovery/retransmit.h"
#include "pkt_hdr.h"
#include "sq.h"
#include "tx_build.h"

enum {
	/*
	 * A burst waits until this fraction of the window is free; on a network a smaller one.  A
	 * burst that is sent at once is marked or finds no room in a queue where the same packets
	 * would pass at the pace of their ACKs.  Half a window at a time fills a queue as often
	 * whether the window is large or small, so that flows with small windows do not get their
	 * share.
	 */
	CWND_BURST_DIVISOR = 2,
	CWND_BURST_DIVISOR_NETWORK = 8,
};

static bool is_new(const struct requester *req)
{
	return req->next_psn == req->end_psn;
}

/* Packet at next_psn. */
struct next {
	struct eng_send_wqe *wqe;
	uint32_t index; /* index of the packet in its message */
	uint32_t psns;	/* number of PSNs that it uses */
	uint64_t cost;	/* weight in bytes */
	bool answered;	/* READ or Atomic: has a response other than an ACK */
	bool begins;	/* first packet of its message, never sent before */
};

/*
 * Rule C13: returns true if the limited request has had no response that proves a receive WQE.  A
 * SEND uses it with its first packet, a WRITE with immediate with its last.
 */
static bool awaits_credit(const struct eng_qp *qp, const struct eng_send_wqe *wqe)
{
	return credit_limited(qp, wqe) &&
	       (wqe->op == ENG_WRITE_IMM || psn_diff(qp->req.unacked_psn, wqe->first_psn) <= 0);
}

/*
 * Returns ENG_TX_BURST if a message may begin, otherwise the reason why not: fence (rule C16), READ
 * depth (rule S12) or credits (rule C13).
 */
static enum eng_tx may_begin(struct eng_qp *qp, const struct next *next, uint64_t now)
{
	const struct requester *req = &qp->req;

	if ((next->wqe->flags & ENG_FENCE) && req->reads_outstanding > 0)
		return ENG_TX_FENCE; /* rule C16 */
	if (next->answered && req->reads_outstanding >= qp->attr.max_rd_atomic &&
	    qp->attr.max_rd_atomic > 0)
		return ENG_TX_READ_DEPTH;
	if (credit_limited(qp, next->wqe) && credit_wait_allowed(qp, now))
		return ENG_TX_CREDIT;
	return ENG_TX_BURST;
}

/*
 * Rules C13 and C15: returns the request that a new packet must not pass while that request waits
 * for a credit, or NULL.  For a later packet of the same message this is the message itself.
 */
static const struct eng_send_wqe *passed_by(const struct eng_qp *qp, const struct next *next)
{
	if (next->begins)
		return qp->req.begun != qp->sq->tail ? sq_at(qp, qp->req.begun - 1) : NULL;
	return next->wqe->op != ENG_WRITE_IMM ? next->wqe : NULL;
}

/*
 * Checks a packet that has never been sent.  rule C17: only such packets are checked against
 * credits.
 */
static enum eng_tx may_send_new(struct eng_qp *qp, const struct next *next, uint64_t now)
{
	const struct eng_send_wqe *passed;

	if (next->begins && qp->state == ENG_SQD)
		return ENG_TX_DRAINED;
	/* If the credits cover all requests that have been started, none of these waits for one. */
	if (!credit_covers(qp, qp->req.begun_ssn)) {
		passed = passed_by(qp, next);
		if (passed && awaits_credit(qp, passed))
			return ENG_TX_CREDIT;
	}
	return next->begins ? may_begin(qp, next, now) : ENG_TX_BURST;
}

/*
 * Minimum room in the window, in bytes, to send the packet: on a network a READ or Atomic is sent
 * if there is any.
 */
static uint64_t least_room(const struct eng_qp *qp, const struct next *next)
{
	return next->answered && cc_is_network(qp) ? 1 : next->cost;
}

/*
 * Returns true if after a READ that exceeds the window at most half of all PSNs are in flight. With
 * more, an old request could not be distinguished from a new one (rule S2).
 */
static bool psns_suffice(const struct eng_qp *qp, const struct next *next)
{
	return !is_new(&qp->req) || sq_in_flight(qp) + next->psns <= PSN_WINDOW;
}

/*
 * Returns ENG_TX_BURST, with next filled, if the packet at next_psn may be sent; otherwise the
 * reason why not.
 */
static enum eng_tx may_send(struct eng_qp *qp, struct next *next, uint64_t now)
{
	const struct requester *req = &qp->req;
	struct eng_send_wqe *wqe;
	enum eng_tx reason = ENG_TX_BURST;

	if (req->next_wqe == qp->sq->head)
		return ENG_TX_IDLE;
	wqe = sq_at(qp, req->next_wqe);
	/* A local error: the request fails once all requests before it are complete. */
	if (wqe->status != ENG_SUCCESS)
		return ENG_TX_LOCAL_ERROR;
	next->wqe = wqe;
	next->answered = op_is_read_or_atomic(wqe->op);
	next->begins = req->next_wqe == req->begun;
	if (is_new(req))
		reason = may_send_new(qp, next, now);
	next->index = wqe_packet_index(wqe, req->next_psn);
	next->psns = message_psns(wqe, next->index);
	next->cost = cwnd_cost_between(qp, wqe, next->index, next->index + next->psns);
	if (reason == ENG_TX_BURST && next->answered && !psns_suffice(qp, next))
		return ENG_TX_CWND;
	if (reason != ENG_TX_BURST || op_is_local(wqe->op) || cwnd_open(qp, least_room(qp, next)))
		return reason;
	return ENG_TX_CWND;
}

/*
 * Checks a request before its first packet is sent.  The memory of a request of one packet is
 * checked when that packet is built.
 */
static enum eng_status local_error(struct eng_qp *qp, const struct next *next)
{
	const struct eng_send_wqe *wqe = next->wqe;
	bool carries_payload = op_row(wqe->op)->carries_payload;

	if (!message_is_defined(qp, wqe->op) || (next->answered && qp->attr.max_rd_atomic == 0))
		return ENG_LOC_QP_OP_ERR;
	if (qp->type == ENG_UD && wqe->length > qp->attr.mtu)
		return ENG_LOC_LEN_ERR;
	if (!(wqe->flags & ENG_INLINE) && (wqe->packets > 1 || !carries_payload) &&
	    !sge_usable(qp, wqe->data.sge, wqe->sge_count,
			carries_payload ? ENG_USE_SEND : ENG_USE_RESULT))
		return ENG_LOC_PROT_ERR;
	return ENG_SUCCESS;
}

static inline void mark_started(struct eng_qp *qp, const struct next *next)
{
	const struct eng_send_wqe *wqe = next->wqe;
	struct requester *req = &qp->req;

	if (credit_limited(qp, wqe))
		count(qp, ENG_COUNT_LIMITED_REQUESTS);
	credit_consume_uncredited(qp, wqe);
	req->begun_ssn = wqe->ssn;
	if (next->answered)
		req->reads_outstanding++;
	req->begun++;
	count(qp, ENG_COUNT_SENDS);
}

/*
 * Accounts for a packet that is in the burst.  Inline, because most of it is constant for a short
 * request.
 */
static inline void mark_sent(struct eng_qp *qp, const struct next *next, uint64_t now)
	__attribute__((always_inline));
static inline void mark_sent(struct eng_qp *qp, const struct next *next, uint64_t now)
{
	struct requester *req = &qp->req;

	if (sq_in_flight(qp) == 0) {
		req->last_progress = now;
	} else if (!sq_awaits_response(qp)) {
		loss_sent_again(qp, now);
	}
	if (next->begins)
		mark_started(qp, next);
	if (is_new(req)) {
		/*
		 * A packet without AckReq is not timed: it is acknowledged only when a later packet
		 * or a probe requests an ACK.
		 */
		if (!rtt_is_timing(&req->rtt) && req->loss.state == LOSS_OPEN &&
		    req->ackreq_psn == psn_add(req->next_psn, next->psns - 1))
			rtt_start(&req->rtt, req->next_psn, now);
		req->end_psn = psn_add(req->end_psn, next->psns);
	}
	req->next_psn = psn_add(req->next_psn, next->psns);
	cwnd_sent(qp, next->cost);
	if (next->index + next->psns == next->wqe->packets)
		req->next_wqe++;
}

/* Finds the payload: length bytes from offset on.  Returns false if its memory cannot be used. */
static inline bool find_payload(const struct eng_qp *qp, const struct eng_send_wqe *wqe,
				uint32_t offset, uint32_t length, struct payload *payload)
	__attribute__((always_inline));
static inline bool find_payload(const struct eng_qp *qp, const struct eng_send_wqe *wqe,
				uint32_t offset, uint32_t length, struct payload *payload)
{
	const struct eng_sge *sge = wqe->data.sge;

	/*
	 * No copy is needed, as the application must not change a posted buffer before the
	 * completion.
	 */
	payload->length = length;
	payload->stable = true;
	payload->kind = PAYLOAD_BYTES;
	if (wqe->flags & ENG_INLINE) {
		payload->bytes = wqe->data.bytes + offset;
	} else if (wqe->sge_count == 1 && length > 0) {
		payload->bytes = qp->ops->map_local(qp->owner, sge->lkey, sge->addr + offset,
						    length, ENG_USE_SEND);
		return payload->bytes;
	} else {
		payload->kind = PAYLOAD_LIST;
		payload->list = sge;
		payload->count = wqe->sge_count;
		payload->offset = offset;
	}
	return true;
}

static enum tx_build_result send_one(struct eng_qp *qp, struct eng_burst *burst,
				     const struct next *next, const struct ack_req_ctx *ack_ctx)
{
	struct requester *req = &qp->req;
	struct eng_send_wqe *wqe = next->wqe;
	uint32_t length = message_payload(wqe, qp->attr.mtu, next->index), ackreq = 0;
	struct payload payload;
	enum tx_build_result result;
	uint8_t opcode, *at;

	if (next->begins) {
		wqe->status = (uint8_t)local_error(qp, next);
		if (wqe->status != ENG_SUCCESS)
			return TX_BUILD_ERROR;
	}
	opcode = message_opcode(qp, wqe, next->index);
	at = tx_build_reserve(burst, length);
	if (!at)
		return TX_BUILD_NO_ROOM;
	if (is_reliable(qp) && ack_req_is_set(qp, burst, wqe, next->index,
					      tx_build_bytes(wire_op_header_length(opcode), length),
					      next->cost, ack_ctx))
		ackreq = WIRE_BTH_ACKREQ;
	result = TX_BUILD_ERROR;
	if (find_payload(qp, wqe, next->index * qp->attr.mtu, length, &payload))
		result = tx_build_add(
			qp, burst,
			message_request(qp, wqe, next->index, opcode, length, ackreq, at),
			&payload);
	if (result == TX_BUILD_ERROR)
		wqe->status = ENG_LOC_PROT_ERR;
	if (result == TX_BUILD_OK) {
		if (ackreq)
			req->ackreq_psn = psn_add(req->next_psn, next->psns - 1);
		mark_sent(qp, next, ack_ctx->now);
	}
	return result;
}

/*
 * Executes LOCAL_INV or BIND_MW (MW bind), which are never sent: when their turn in the send queue
 * comes, in order with all other requests.  Returns the status of the completion.
 */
static enum eng_status local_execute(struct eng_qp *qp, const struct eng_send_wqe *wqe)
{
	if (wqe->op == ENG_BIND_MW)
		return qp->ops->bind && qp->ops->bind(qp->owner, wqe) ? ENG_SUCCESS
								      : ENG_MW_BIND_ERR;
	/* LOCAL_INV: wqe->immediate is the key to invalidate. */
	return qp->ops->invalidate && qp->ops->invalidate(qp->owner, wqe->immediate)
		       ? ENG_SUCCESS
		       : ENG_LOC_PROT_ERR;
}

/* Executes a local request, or skips it if it has been executed before going back. */
static enum tx_build_result step_local(struct eng_qp *qp, const struct next *next)
{
	struct requester *req = &qp->req;

	if (next->begins) {
		next->wqe->status = (uint8_t)local_execute(qp, next->wqe);
		if (next->wqe->status != ENG_SUCCESS)
			return TX_BUILD_ERROR;
		req->begun++;
	}
	req->next_wqe++;
	sq_retire_local(qp);
	return TX_BUILD_OK;
}

/* Adds a packet to the burst, or executes a local request.  ACKs are not waited for (rule S3). */
static enum tx_build_result step(struct eng_qp *qp, struct eng_burst *burst,
				 const struct next *next, const struct ack_req_ctx *ack_ctx)
{
	if (op_is_local(next->wqe->op))
		return step_local(qp, next);
	/* A datagram is sent on the path of its address handle. */
	if (qp->type == ENG_UD && burst->path != next->wqe->ud.path) {
		if (burst->packets > 0)
			return TX_BUILD_NO_ROOM;
		burst->path = next->wqe->ud.path;
	}
	return send_one(qp, burst, next, ack_ctx);
}

static __attribute__((noinline)) enum tx_build_result
retransmit_one(struct eng_qp *qp, struct eng_burst *burst, struct eng_send_wqe *wqe, uint32_t index)
{
	uint32_t length = message_payload(wqe, qp->attr.mtu, index);
	uint8_t opcode = message_opcode(qp, wqe, index), *at = tx_build_reserve(burst, length);
	struct payload payload;
	enum tx_build_result result = TX_BUILD_ERROR;

	if (!at)
		return TX_BUILD_NO_ROOM;
	if (find_payload(qp, wqe, index * qp->attr.mtu, length, &payload))
		result = tx_build_add(
			qp, burst,
			message_request(qp, wqe, index, opcode, length, WIRE_BTH_ACKREQ, at),
			&payload);
	if (result == TX_BUILD_ERROR)
		wqe->status = ENG_LOC_PROT_ERR;
	return result;
}

/* Fills a burst with missing packets, all with AckReq, so that their ACK is not delayed. */
static __attribute__((noinline)) enum eng_tx send_retransmit(struct eng_qp *qp,
							     struct eng_burst *burst)
{
	struct retransmit *retransmit = &qp->req.retransmit;
	uint32_t at = qp->sq->tail, psn = qp->req.unacked_psn, end, packets = 0;
	enum tx_build_result result = TX_BUILD_OK;

	end = psn_add(retransmit->psn, retransmit->packets);
	burst->kind = ENG_BURST_RETRANSMIT;
	burst->first_psn = psn;
	while (psn_diff(psn, end) < 0 && psn_diff(psn, qp->req.next_psn) < 0 && !burst->closed &&
	       burst->packets < burst->max_packets) {
		struct eng_send_wqe *wqe = sq_at(qp, at);
		uint32_t index = wqe_packet_index(wqe, psn);

		if (index >= wqe->packets) {
			at++;
			continue;
		}
		result = retransmit_one(qp, burst, wqe, index);
		if (result != TX_BUILD_OK)
			break;
		packets += message_psns(wqe, index);
		psn = psn_add(psn, message_psns(wqe, index));
	}
	retransmit->psn = burst->first_psn;
	retransmit->packets = packets;
	if (packets == 0) {
		/* The missing packets have been acknowledged since. */
		retransmit_stop(qp);
		return result == TX_BUILD_ERROR ? ENG_TX_LOCAL_ERROR : ENG_TX_IDLE;
	}
	qp->req.loss.action = LOSS_ACTION_NONE;
	return ENG_TX_BURST;
}

bool requester_waits_for_cwnd(const struct eng_qp *qp, uint32_t packets)
{
	const struct requester *req = &qp->req;
	uint32_t unsent = psn_sub(req->post_psn, req->next_psn), index, psns;
	const struct eng_send_wqe *wqe;
	uint64_t cost, room, part;

	/* Packets to be sent again count as in flight, although none of them is. */
	if (unsent == 0 || !is_new(req) || !is_reliable(qp))
		return false;
	wqe = sq_at(qp, req->next_wqe);
	if (op_is_local(wqe->op))
		return false;
	index = wqe_packet_index(wqe, req->next_psn);
	psns = message_psns(wqe, index);
	cost = cwnd_cost_between(qp, wqe, index, index + psns) / psns;
	room = cwnd_room(qp) / cost;
	part = req->cwnd / cost /
	       (cc_is_network(qp) ? CWND_BURST_DIVISOR_NETWORK : CWND_BURST_DIVISOR);
	return room < unsent && room < (packets < part ? packets : part);
}

/*
 * Fast path for a single posted request of one packet with AckReq that nothing holds back: does the
 * same as the loop in requester_transmit() if the conditions here imply the results of may_send(),
 * local_error() and ack_req_is_set().  Returns false without any effect in all other cases.  Window
 * and credits are those of rules C13 and C17.
 */
static inline bool requester_send_fast(struct eng_qp *qp, struct eng_burst *burst, uint64_t now)
{
	struct requester *req = &qp->req;
	struct next next = { .psns = 1, .begins = true };
	const struct op_row *row;
	struct eng_send_wqe *wqe;
	struct payload payload;
	uint8_t *at;

	if (qp->type != ENG_RC || qp->state != ENG_RTS || req->next_wqe + 1 != qp->sq->head ||
	    req->next_wqe != req->begun || req->next_psn != req->unacked_psn || !is_new(req))
		return false;
	wqe = sq_at(qp, req->next_wqe);
	row = op_row(wqe->op);
	if (wqe->packets != 1 || wqe->status != ENG_SUCCESS || !is_signaled(qp, wqe) ||
	    row->response != OP_ACKED || !credit_covers(qp, wqe->ssn) || !budget_is_open(qp))
		return false;
	at = tx_build_reserve(burst, wqe->length);
	if (!at || !find_payload(qp, wqe, 0, wqe->length, &payload) ||
	    tx_build_add(qp, burst,
			 message_request(qp, wqe, 0, WIRE_RC | row->only, wqe->length,
					 WIRE_BTH_ACKREQ, at),
			 &payload) != TX_BUILD_OK)
		return false;
	next.wqe = wqe;
	next.cost = cwnd_cost(qp, wqe, 1);
	req->ackreq_psn = req->next_psn;
	mark_sent(qp, &next, now);
	req->waiting = ENG_TX_IDLE;
	return true;
}

enum eng_tx requester_transmit_control(struct eng_qp *qp, struct eng_burst *burst)
{
	tx_build_begin(burst, &qp->attr.path);
	if (qp->req.loss.action == LOSS_ACTION_ACK_PROBE) {
		ack_probe_transmit(qp, burst);
		return ENG_TX_BURST;
	}
	return qp->req.loss.action == LOSS_ACTION_RETRANSMIT ? send_retransmit(qp, burst)
							     : read_retry_transmit(qp, burst);
}

enum eng_tx requester_transmit(struct eng_qp *qp, struct eng_burst *burst, uint64_t now)
{
	struct requester *req = &qp->req;
	enum tx_build_result result = TX_BUILD_OK;
	enum eng_tx reason = ENG_TX_BURST;
	struct ack_req_ctx ack_ctx;

	if (req->loss.state == LOSS_RNR_WAIT && req->loss.rnr_until <= now)
		loss_rnr_over(qp, now);
	tx_build_begin(burst, &qp->attr.path);
	burst->kind = ENG_BURST_REQUESTS;
	burst->first_psn = req->next_psn;
	if (req->loss.state != LOSS_RNR_WAIT && requester_send_fast(qp, burst, now))
		return ENG_TX_BURST;
	ack_ctx = ack_req_read(qp, now);
	/* rules C6 and S10: after an RNR NAK the requester waits for the time that it contained. */
	if (!can_request(qp))
		reason = ENG_TX_STATE;
	else if (req->loss.state == LOSS_RNR_WAIT)
		reason = ENG_TX_RNR;
	while (reason == ENG_TX_BURST && result == TX_BUILD_OK && !burst->closed &&
	       burst->packets < burst->max_packets) {
		struct next next;

		reason = may_send(qp, &next, now);
		if (reason == ENG_TX_BURST && burst->packets == 0 && !budget_is_open(qp))
			reason = ENG_TX_BUDGET;
		if (reason == ENG_TX_BURST)
			result = step(qp, burst, &next, &ack_ctx);
	}
	/*
	 * Packets already in the burst are sent; the error is handled once its request is the
	 * oldest.
	 */
	if (result == TX_BUILD_ERROR)
		reason = ENG_TX_LOCAL_ERROR;
	if (reason == ENG_TX_CREDIT && req->waiting != ENG_TX_CREDIT)
		count(qp, ENG_COUNT_CREDIT_WAITS);
	req->waiting = reason;
	return burst->packets > 0 ? ENG_TX_BURST : reason;
}
