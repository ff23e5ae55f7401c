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
#include "local_op.h"
#include "pkt_hdr.h"
#include "sq.h"
#include "tx_build.h"

enum {
	/*
	 * A burst waits for such a part of the window.  On a network it is less.  A burst that
	 * comes at once is marked, or finds no room in a queue, where the same packets at the pace
	 * of their ACKs would pass; and half a window at a time meets a full queue as often whether
	 * it is half of a large window or of a small one, which then does not get its share.
	 */
	CWND_BURST_DIVISOR = 2,
	CWND_BURST_DIVISOR_NETWORK = 8,
};

static bool is_new(const struct requester *req)
{
	return req->next_psn == req->end_psn;
}

/* The packet at next_psn. */
struct next {
	struct eng_send_wqe *wqe;
	uint32_t index; /* of the packet in its message */
	uint32_t psns;	/* that it takes */
	uint64_t cost;	/* its weight */
	bool answered;	/* by more than an ACK: READ, Atomic */
	bool begins;	/* it is the first of its message, and has never been sent */
};

/*
 * Rule C13: the limited request has had no response that proves a receive WQE.  A SEND takes it
 * with its first packet, a WRITE with immediate with its last.
 */
static bool awaits_credit(const struct eng_qp *qp, const struct eng_send_wqe *wqe)
{
	return credit_limited(qp, wqe) &&
	       (wqe->op == ENG_WRITE_IMM || psn_diff(qp->req.unacked_psn, wqe->first_psn) <= 0);
}

/* Rules C13, C16 and S12 for a message that has not been begun. */
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
 * Rules C13 and C15: the request that a new packet must not pass while it awaits a credit, NULL if
 * there is none.  To a further packet of a message that is the message itself.
 */
static const struct eng_send_wqe *passed_by(const struct eng_qp *qp, const struct next *next)
{
	if (next->begins)
		return qp->req.begun != qp->sq->tail ? sq_at(qp, qp->req.begun - 1) : NULL;
	return next->wqe->op != ENG_WRITE_IMM ? next->wqe : NULL;
}

/* rule C17: only what is new is checked against credits. */
static enum eng_tx may_send_new(struct eng_qp *qp, const struct next *next, uint64_t now)
{
	const struct eng_send_wqe *passed;

	if (next->begins && qp->state == ENG_SQD)
		return ENG_TX_DRAINED;
	/* Where they reach beyond all that has been begun, nothing of it waits for credits. */
	if (!credit_covers(qp, qp->req.begun_ssn)) {
		passed = passed_by(qp, next);
		if (passed && awaits_credit(qp, passed))
			return ENG_TX_CREDIT;
	}
	return next->begins ? may_begin(qp, next, now) : ENG_TX_BURST;
}

/* What of its weight has to find room: a READ goes when there is some. */
static uint64_t least_room(const struct eng_qp *qp, const struct next *next)
{
	return next->answered && cc_is_network(qp) ? 1 : next->cost;
}

/*
 * Does a READ that goes without room for all of it leave no more than half of all PSNs under way?
 * With more an old request would look like a new one (rule S2).
 */
static bool psns_suffice(const struct eng_qp *qp, const struct next *next)
{
	return !is_new(&qp->req) || sq_in_flight(qp) + next->psns <= PSN_WINDOW;
}

/* May the packet at next_psn be sent?  ENG_TX_BURST, and then next is filled, or why not. */
static enum eng_tx may_send(struct eng_qp *qp, struct next *next, uint64_t now)
{
	const struct requester *req = &qp->req;
	struct eng_send_wqe *wqe;
	enum eng_tx reason = ENG_TX_BURST;

	if (req->next_wqe == qp->sq->head)
		return ENG_TX_IDLE;
	wqe = sq_at(qp, req->next_wqe);
	/* A local error: the request fails when all before it are complete. */
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
 * What is wrong with a request before its first packet goes.  That the memory of a request of one
 * packet can be used shows when that is made.
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

static inline void note_begun(struct eng_qp *qp, const struct next *next)
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

/* Inline, because for a short request most of it is known. */
static inline void note_sent(struct eng_qp *qp, const struct next *next, uint64_t now)
	__attribute__((always_inline));
static inline void note_sent(struct eng_qp *qp, const struct next *next, uint64_t now)
{
	struct requester *req = &qp->req;

	if (sq_in_flight(qp) == 0) {
		req->last_progress = now;
	} else if (!sq_awaits_response(qp)) {
		loss_sent_again(qp, now);
	}
	if (next->begins)
		note_begun(qp, next);
	if (is_new(req)) {
		/* Without AckReq its ACK comes when another packet, or a probe, requests one. */
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

/* Where length bytes from offset on are; false when their memory cannot be used. */
static inline bool find_payload(const struct eng_qp *qp, const struct eng_send_wqe *wqe,
				uint32_t offset, uint32_t length, struct payload *payload)
	__attribute__((always_inline));
static inline bool find_payload(const struct eng_qp *qp, const struct eng_send_wqe *wqe,
				uint32_t offset, uint32_t length, struct payload *payload)
{
	const struct eng_sge *sge = wqe->data.sge;

	/* The consumer leaves a posted buffer alone until the completion. */
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
				     const struct next *next, const struct ack_req_ctx *facts)
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
					      next->cost, facts))
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
		note_sent(qp, next, facts->now);
	}
	return result;
}

/* Execute a local request, or pass it when going forward again. */
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

/* One step forward: a packet into the burst, or a local request.  Nothing waits for ACKs (rule S3).
 */
static enum tx_build_result step(struct eng_qp *qp, struct eng_burst *burst,
				 const struct next *next, const struct ack_req_ctx *facts)
{
	if (op_is_local(next->wqe->op))
		return step_local(qp, next);
	/* A datagram goes where its address handle says. */
	if (qp->type == ENG_UD && burst->path != next->wqe->ud.path) {
		if (burst->packets > 0)
			return TX_BUILD_NO_ROOM;
		burst->path = next->wqe->ud.path;
	}
	return send_one(qp, burst, next, facts);
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

/* What is missing, as far as one burst takes it; an ACK of it cannot wait. */
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
		/* What was missing has been acknowledged meanwhile. */
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

	/* What is sent again counts as under way, though nothing of it is. */
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
 * The one request that is posted goes whole on an idle wire, in one packet with AckReq, and nothing
 * holds it back.  What the loop in requester_transmit() does for it, when all that may_send(),
 * local_error() and ack_req_is_set() ask has been answered by that.  False, and nothing has
 * been done, for all others; the window and the credits are those of rules C13 and C17.
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
	    row->answer != OP_ACKED || !credit_covers(qp, wqe->ssn) || !budget_is_open(qp))
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
	note_sent(qp, &next, now);
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
	struct ack_req_ctx facts;

	if (req->loss.state == LOSS_RNR_WAIT && req->loss.rnr_until <= now)
		loss_rnr_over(qp, now);
	tx_build_begin(burst, &qp->attr.path);
	burst->kind = ENG_BURST_REQUESTS;
	burst->first_psn = req->next_psn;
	if (req->loss.state != LOSS_RNR_WAIT && requester_send_fast(qp, burst, now))
		return ENG_TX_BURST;
	facts = ack_req_look(qp, now);
	/* rules C6 and S10: the peer had no receive WQE, and has named a time to wait. */
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
			result = step(qp, burst, &next, &facts);
	}
	/* What is in the burst goes out; the error shows when it is the oldest request. */
	if (result == TX_BUILD_ERROR)
		reason = ENG_TX_LOCAL_ERROR;
	if (reason == ENG_TX_CREDIT && req->waiting != ENG_TX_CREDIT)
		count(qp, ENG_COUNT_CREDIT_WAITS);
	req->waiting = reason;
	return burst->packets > 0 ? ENG_TX_BURST : reason;
}
