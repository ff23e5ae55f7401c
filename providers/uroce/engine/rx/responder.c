/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "responder.h"

#include <assert.h>
#include <string.h>

#include "engine/base/ordered_copy.h"
#include "engine/base/sge.h"
#include "engine/cc/cc.h"
#include "engine/tx/pkt_hdr.h"
#include "ooo_rx.h"
#include "resp_res.h"

void responder_start(struct eng_qp *qp, uint32_t rq_psn, uint64_t now)
{
	struct responder *resp = &qp->resp;

	if (cc_is_network(qp))
		pacing_start_network(&resp->pacing, qp->ecn.cnp != NULL, now);
	else
		pacing_start(&resp->pacing, now);
	resp->expected_psn = rq_psn & PSN_MASK;
	resp->ooo_psn = psn_sub(resp->expected_psn, 1);
	resp->previous_opcode = -1;
	/*
	 * rule C9: until there is a response, the last positive one is that before the first PSN.
	 */
	resp->credit_adv.last_positive_psn = psn_sub(resp->expected_psn, 1);
	resp->ack_psn = resp->credit_adv.last_positive_psn;
}

static void complete_receive(struct eng_qp *qp, struct eng_wc *wc)
{
	struct responder *resp = &qp->resp;

	assert(resp->taken);
	resp->wqes_done++;
	wc->wr_id = resp->wqe.wr_id;
	wc->srqn = resp->srqn;
	wc->receive = true;
	resp->taken = false;
	qp->ops->complete(qp->owner, wc);
}

void responder_flush(struct eng_qp *qp)
{
	struct eng_wc wc = {
		.status = ENG_WR_FLUSH_ERR, .op = ENG_SEND, .receive = true, .solicited = true
	};

	if (qp->resp.taken)
		complete_receive(qp, &wc);
	if (qp->rq_shared)
		return;
	while (eng_ring_used(qp->rq) > 0) {
		const struct eng_recv_wqe *wqe = eng_ring_slot(qp->rq, qp->rq->tail);

		wc.wr_id = wqe->wr_id;
		qp->rq->tail++;
		qp->ops->complete(qp->owner, &wc);
	}
}

void responder_request_last_ack(struct eng_qp *qp)
{
	struct responder *resp = &qp->resp;

	resp->nak_psn = resp->ack_psn;
	resp->nak_syndrome = AETH_ACK << 5;
	resp->nak = NAK_STATE_NONE;
	if (resp->resp_res_pending > 0 ||
	    psn_diff(resp->ack_psn, resp->credit_adv.last_positive_psn) > 0)
		resp->nak = NAK_STATE_PENDING;
}

enum eng_status responder_error(struct eng_qp *qp, enum request_error error, uint32_t psn)
{
	const struct request_error_row *row = &request_error_rows[error];
	struct responder *resp = &qp->resp;

	resp->nak = is_reliable(qp) ? NAK_STATE_PENDING : NAK_STATE_SENT;
	resp->nak_psn = psn;
	resp->nak_syndrome = row->syndrome;
	if (error == REQUEST_INVALIDATE && is_reliable(qp))
		responder_request_last_ack(qp);
	if (error == REQUEST_RNR) {
		resp->nak_syndrome |= qp->attr.min_rnr_timer & 31;
		/*
		 * Drops the record of packets received out of order before this RNR NAK: the peer
		 * sends everything from psn on again.
		 */
		if (!resp->ooo.first)
			resp->ooo_psn = psn_sub(psn, 1);
	}
	/*
	 * The QP is in ERR already, with the NAK of a later error pending, and now a READ response
	 * that precedes that NAK has failed: only the NAK is replaced.
	 */
	if (!row->fatal || qp->state == ENG_ERR)
		return ENG_SUCCESS;
	if (resp->taken && row->receive_status != ENG_WR_FLUSH_ERR) {
		struct eng_wc wc = { .status = row->receive_status,
				     .op = ENG_SEND,
				     .solicited = true };

		complete_receive(qp, &wc);
	}
	qp->ops->event(qp->owner, row->event);
	return ENG_WR_FLUSH_ERR;
}

/*
 * rule C5: the first packet of a SEND, or the last of a WRITE with immediate, uses a receive WQE.
 */
enum request_error responder_get_recv_wqe(struct eng_qp *qp)
{
	struct responder *resp = &qp->resp;
	const struct eng_recv_wqe *wqe;
	enum eng_rq_result result;

	assert(!resp->taken);
	if (qp->rq_shared && qp->ops->get_recv_wqe) {
		result = qp->ops->get_recv_wqe(qp->owner, resp->srqn, &resp->wqe, qp->recv_sge);
		resp->taken = result == ENG_RQ_OK;
		resp->wqes_consumed += resp->taken;
		if (result == ENG_RQ_EMPTY)
			return REQUEST_RNR;
		return resp->taken ? REQUEST_RIGHT : REQUEST_INVALID;
	}
	if (eng_ring_used(qp->rq) == 0)
		return REQUEST_RNR;
	wqe = eng_ring_slot(qp->rq, qp->rq->tail);
	assert(wqe->sge_count <= qp->max_recv_sge);
	resp->wqe.wr_id = wqe->wr_id;
	resp->wqe.length = wqe->length;
	resp->wqe.sge_count = wqe->sge_count;
	/*
	 * One SGE is usual, and an assignment of constant size is faster than memcpy() of a
	 * variable one.
	 */
	if (wqe->sge_count == 1)
		qp->recv_sge[0] = wqe->sge[0];
	else
		memcpy(qp->recv_sge, wqe->sge, wqe->sge_count * sizeof(wqe->sge[0]));
	resp->taken = true;
	resp->wqes_consumed++;
	qp->rq->tail++;
	return REQUEST_RIGHT;
}

/* rule S6: adds the receive completion, for the last packet only. */
static void finish_receive(struct eng_qp *qp, const struct wire_packet *packet, enum eng_op op)
{
	uint16_t headers = wire_op_headers(packet->opcode);
	struct eng_wc wc = {
		.op = op,
		.byte_len = qp->resp.received,
		.solicited = packet->solicited,
	};

	if (headers & WIRE_HAS_IMMDT) {
		wc.flags = ENG_WC_IMMEDIATE;
		wc.immediate = packet->immediate;
	} else if (headers & WIRE_HAS_IETH) {
		wc.flags = ENG_WC_INVALIDATED;
		wc.immediate = packet->invalidate_rkey;
	}
	complete_receive(qp, &wc);
	count(qp, ENG_COUNT_RECEIVES);
}

enum request_error responder_send(struct eng_qp *qp, const struct wire_packet *packet)
{
	struct responder *resp = &qp->resp;
	enum wire_position position = wire_op_position(packet->opcode);

	if (position & (WIRE_FIRST | WIRE_ONLY)) {
		/* UC: an aborted message left its receive WQE to the next one. */
		enum request_error error = resp->taken ? REQUEST_RIGHT : responder_get_recv_wqe(qp);

		if (error != REQUEST_RIGHT)
			return error;
		resp->received = 0;
	}
	/* rule C18: there is a WQE, but it is too small. */
	if (packet->payload_length > resp->wqe.length - resp->received)
		return REQUEST_RECEIVE_LENGTH;
	if (!sge_scatter(qp, qp->recv_sge, resp->wqe.sge_count, resp->received, packet->payload,
			 packet->payload_length))
		return REQUEST_RECEIVE_MEMORY;
	resp->received += packet->payload_length;
	if (!(position & (WIRE_LAST | WIRE_ONLY)))
		return REQUEST_RIGHT;
	if (wire_op_headers(packet->opcode) & WIRE_HAS_IETH) {
		if (!qp->ops->invalidate ||
		    !qp->ops->invalidate(qp->owner, packet->invalidate_rkey))
			return REQUEST_INVALIDATE;
	}
	finish_receive(qp, packet,
		       wire_op_headers(packet->opcode) & WIRE_HAS_IMMDT ? ENG_SEND_IMM : ENG_SEND);
	return REQUEST_RIGHT;
}

enum request_error responder_write(struct eng_qp *qp, const struct wire_packet *packet)
{
	struct responder *resp = &qp->resp;
	enum wire_position position = wire_op_position(packet->opcode);

	if ((wire_op_headers(packet->opcode) & WIRE_HAS_IMMDT) && !resp->taken) {
		/* rule C6: without a receive WQE nothing is executed. */
		enum request_error error = responder_get_recv_wqe(qp);

		if (error != REQUEST_RIGHT)
			return error;
	}
	if (position & (WIRE_FIRST | WIRE_ONLY)) {
		resp->write_va = packet->va;
		resp->write_rkey = packet->rkey;
		resp->write_length = packet->dma_length;
		resp->received = 0;
	}
	if (packet->payload_length > 0) {
		void *to = qp->ops->map_remote(qp->owner, resp->write_rkey,
					       resp->write_va + resp->received,
					       packet->payload_length, ENG_REMOTE_WRITE);

		if (!to)
			return REQUEST_REMOTE_ACCESS;
		copy_last_word_last(to, packet->payload, packet->payload_length);
		resp->received += packet->payload_length;
	}
	if (wire_op_headers(packet->opcode) & WIRE_HAS_IMMDT)
		finish_receive(qp, packet, ENG_WRITE_IMM);
	return REQUEST_RIGHT;
}

static void execute_read(struct eng_qp *qp, const struct wire_packet *packet)
{
	uint32_t packets = message_packets(packet->dma_length, qp->attr.mtu);
	struct resp_res *entry = resp_res_new(qp, packet->psn, packets);

	entry->va = packet->va;
	entry->rkey = packet->rkey;
	entry->length = packet->dma_length;
	entry->until = packet->dma_length;
	entry->srqn = qp->resp.srqn;
}

/*
 * Executes a packet that has passed check_request(), and returns the errors that only the execution
 * shows.
 */
static enum request_error execute(struct eng_qp *qp, const struct wire_packet *packet)
{
	switch (wire_op_family(packet->opcode)) {
	case WIRE_FAMILY_SEND:
		return responder_send(qp, packet);
	case WIRE_FAMILY_WRITE:
		return responder_write(qp, packet);
	case WIRE_FAMILY_READ:
		execute_read(qp, packet);
		return REQUEST_RIGHT;
	case WIRE_FAMILY_ATOMIC:
		return execute_atomic(qp, packet);
	case WIRE_FAMILY_ATOMIC_WRITE:
		return execute_atomic_write(qp, packet);
	case WIRE_FAMILY_FLUSH:
		return execute_flush(qp, packet);
	default:
		return REQUEST_INVALID;
	}
}

/*
 * To be called when a SEND or WRITE packet has been executed: makes an ACK pending if it has
 * AckReq.
 */
static inline void request_ack(struct eng_qp *qp, const struct wire_packet *packet)
{
	struct responder *resp = &qp->resp;

	resp->ack_psn = packet->psn;
	if (!packet->ack_request)
		return;
	if (resp->ack_pending)
		count(qp, ENG_COUNT_ACK_DEFERRED);
	resp->ack_pending = true;
}

static void mark_executed(struct eng_qp *qp, const struct wire_packet *packet)
{
	struct responder *resp = &qp->resp;
	enum wire_family family = wire_op_family(packet->opcode);
	bool done = wire_op_position(packet->opcode) & (WIRE_LAST | WIRE_ONLY);
	uint32_t psns = 1;

	if (family == WIRE_FAMILY_SEND || family == WIRE_FAMILY_WRITE) {
		request_ack(qp, packet);
	} else {
		if (family == WIRE_FAMILY_READ)
			psns = message_packets(packet->dma_length, qp->attr.mtu);
		if (!resp->ack_pending)
			psn_follow(&resp->ack_psn, resp->expected_psn);
	}
	resp->expected_psn = psn_add(resp->expected_psn, psns);
	resp->previous_opcode = done ? -1 : packet->opcode;
	/* rule C11: completed requests of all kinds count. */
	if (done)
		resp->msn = psn_add(resp->msn, 1);
}

/* rule S4: the responses of a duplicate READ are sent again, within the range of the original. */
static void duplicate_read(struct eng_qp *qp, const struct wire_packet *packet)
{
	struct resp_res *entry = resp_res_find(qp, packet->psn);
	uint32_t from, offset;

	if (!entry || entry->kind == RESP_RES_ATOMIC || entry->rkey != packet->rkey)
		return;
	from = psn_sub(packet->psn, entry->psn);
	offset = from * qp->attr.mtu;
	if (packet->va != entry->va + offset || packet->dma_length > entry->length - offset)
		return;
	entry->until = offset + packet->dma_length;
	/*
	 * A duplicate from the start may be a retry after an RNR NAK, so it counts as a loss only
	 * on a network, where losses are likelier.  A duplicate from the middle always means that
	 * responses were lost.
	 */
	if (from > 0 || pacing_is_on_network(&qp->resp.pacing))
		pacing_lost(&qp->resp.pacing);
	resp_res_replay(qp, entry, from, from + message_packets(packet->dma_length, qp->attr.mtu));
}

/* rule S4: the response to a duplicate Atomic is the saved result; it is not executed again. */
static void duplicate_atomic(struct eng_qp *qp, const struct wire_packet *packet)
{
	struct resp_res *entry = resp_res_find(qp, packet->psn);

	if (entry && entry->kind == RESP_RES_ATOMIC)
		resp_res_replay(qp, entry, 0, 1);
}

/*
 * A duplicate ATOMIC_WRITE or FLUSH is not executed again; its response carries no data, so a new
 * one is made.
 */
static void duplicate_without_data(struct eng_qp *qp, const struct wire_packet *packet)
{
	struct resp_res *entry = resp_res_find(qp, packet->psn);

	if (entry && entry->kind == RESP_RES_READ && entry->length == 0)
		resp_res_replay(qp, entry, 0, 1);
}

static void receive_duplicate(struct eng_qp *qp, const struct wire_packet *packet)
{
	count(qp, ENG_COUNT_DUPLICATE_REQUEST);
	switch (wire_op_family(packet->opcode)) {
	case WIRE_FAMILY_READ:
		duplicate_read(qp, packet);
		break;
	case WIRE_FAMILY_ATOMIC:
		duplicate_atomic(qp, packet);
		break;
	case WIRE_FAMILY_ATOMIC_WRITE:
	case WIRE_FAMILY_FLUSH:
		duplicate_without_data(qp, packet);
		break;
	default:
		/* A duplicate is acknowledged, not executed; a pending NAK acknowledges it as well.
		 */
		if (qp->resp.nak != NAK_STATE_PENDING)
			qp->resp.ack_pending = true;
	}
}

static enum eng_status receive_ahead(struct eng_qp *qp, const struct wire_packet *packet)
{
	uint32_t psn = packet->psn;
	struct responder *resp = &qp->resp;

	count(qp, ENG_COUNT_OUT_OF_SEQ_REQUEST);
	if ((resp->nak == NAK_STATE_NONE && !resp->ooo.first) ||
	    psn_diff(resp->ooo_psn, resp->expected_psn) < 0 || psn_diff(psn, resp->ooo_psn) > 0)
		resp->ooo_psn = psn;
	ooo_insert(qp, packet);
	return resp->nak != NAK_STATE_NONE
		       ? ENG_SUCCESS
		       : responder_error(qp, REQUEST_PSN_SEQUENCE, resp->expected_psn);
}

void responder_establish(struct eng_qp *qp)
{
	if (qp->resp.established)
		return;
	qp->resp.established = true;
	/*
	 * The first request of the peer shows that the connection is established.  In RTR the
	 * application gets COMM_EST.  After RTR only the connection manager needs it, if it still
	 * waits for the RTU.
	 */
	qp->ops->event(qp->owner,
		       qp->state == ENG_RTR ? ENG_EVENT_COMM_EST : ENG_EVENT_FIRST_REQUEST);
}

/*
 * Ends the NAK because the expected packet has arrived.  A pending NAK would have acknowledged
 * earlier packets (rule S11): an ACK must do that.
 */
static void cancel_nak(struct eng_qp *qp)
{
	struct responder *resp = &qp->resp;

	if (resp->nak == NAK_STATE_PENDING &&
	    psn_diff(resp->ack_psn, resp->credit_adv.last_positive_psn) > 0)
		resp->ack_pending = true;
	resp->nak = NAK_STATE_NONE;
}

/* Executes the request with the expected PSN. */
static enum request_error execute_in_order(struct eng_qp *qp, const struct wire_packet *packet)
{
	enum request_error error;

	/* The first packet of a message selects its shared receive queue. */
	if (qp->resp.previous_opcode < 0)
		qp->resp.srqn = packet->xrc_srqn;
	error = check_request(qp, packet);
	if (error == REQUEST_RIGHT)
		error = execute(qp, packet);
	if (error == REQUEST_RIGHT)
		mark_executed(qp, packet);
	return error;
}

/*
 * Makes a NAK of expected_psn pending if a later packet has been received out of order: another
 * hole precedes that packet, or it was dropped.
 */
static enum eng_status nak_next_hole(struct eng_qp *qp)
{
	const struct responder *resp = &qp->resp;

	if (psn_diff(resp->ooo_psn, resp->expected_psn) < 0)
		return ENG_SUCCESS;
	return responder_error(qp, REQUEST_PSN_SEQUENCE, resp->expected_psn);
}

/*
 * Called when a missing packet has arrived: executes the packets that are kept after it.  One ACK
 * covers them all, even if none has AckReq; if another packet is missing (lost, or dropped for lack
 * of memory), its NAK does instead.
 */
static __attribute__((noinline)) enum eng_status execute_ooo(struct eng_qp *qp, bool missed,
							     bool unasked)
{
	struct responder *resp = &qp->resp;
	const struct wire_packet *packet = ooo_peek(qp);
	enum request_error error = REQUEST_RIGHT;
	uint32_t psn = resp->expected_psn;

	/*
	 * The hole goes on: proceed as if nothing were kept, as the peer may be sending all again.
	 */
	if (!packet)
		return missed ? nak_next_hole(qp) : ENG_SUCCESS;
	while (packet && error == REQUEST_RIGHT) {
		psn = packet->psn;
		error = execute_in_order(qp, packet);
		count(qp, ENG_COUNT_OOO_EXECUTED);
		ooo_pop(qp);
		if (error == REQUEST_RIGHT)
			packet = ooo_peek(qp);
	}
	if (error != REQUEST_RIGHT)
		return responder_error(qp, error, psn);
	if (psn_diff(resp->ack_psn, resp->credit_adv.last_positive_psn) > 0)
		resp->ack_pending = true;
	/* After an RNR NAK the peer sends all of it again anyway. */
	return unasked ? ENG_SUCCESS : nak_next_hole(qp);
}

/*
 * Does the same as execute_in_order() for the SENDs that responder.h names, in a third of the
 * instructions, since the kind of the request is known.
 */
bool responder_receive_fast(struct eng_qp *qp, const struct wire_packet *packet)
{
	struct responder *resp = &qp->resp;
	const uint32_t length = packet->payload_length;
	const struct eng_recv_wqe *wqe;
	struct eng_wc wc = { .op = ENG_SEND, .receive = true };

	if (packet->psn != resp->expected_psn || !can_respond(qp) || resp->previous_opcode >= 0 ||
	    resp->nak != NAK_STATE_NONE || resp->ooo.first || !resp->established || qp->rq_shared ||
	    length > qp->attr.mtu || eng_ring_used(qp->rq) == 0)
		return false;
	wqe = eng_ring_slot(qp->rq, qp->rq->tail);
	if (wqe->sge_count != 1 || length > wqe->sge[0].length)
		return false;
	if (length > 0) {
		void *to = qp->ops->map_local(qp->owner, wqe->sge[0].lkey, wqe->sge[0].addr, length,
					      ENG_USE_RECEIVE);

		if (!to)
			return false;
		memcpy(to, packet->payload, length);
	}
	wc.wr_id = wqe->wr_id;
	wc.byte_len = length;
	wc.solicited = packet->solicited;
	qp->rq->tail++;
	resp->wqes_consumed++;
	resp->wqes_done++;
	qp->ops->complete(qp->owner, &wc);
	count(qp, ENG_COUNT_RECEIVES);
	request_ack(qp, packet);
	resp->expected_psn = psn_add(resp->expected_psn, 1);
	resp->msn = psn_add(resp->msn, 1);
	return true;
}

enum eng_status responder_receive(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now)
{
	struct responder *resp = &qp->resp;
	int32_t distance = psn_diff(packet->psn, resp->expected_psn);
	enum request_error error;
	bool missed = resp->nak == NAK_STATE_PENDING &&
		      resp->nak_syndrome == request_error_rows[REQUEST_PSN_SEQUENCE].syndrome;
	bool unasked =
		resp->nak != NAK_STATE_NONE && syndrome_kind(resp->nak_syndrome) == AETH_RNR_NAK;

	(void)now;
	if (distance > 0)
		return receive_ahead(qp, packet);
	if (distance < 0) {
		receive_duplicate(qp, packet);
		return ENG_SUCCESS;
	}
	cancel_nak(qp);
	responder_establish(qp);
	error = execute_in_order(qp, packet);
	if (error != REQUEST_RIGHT)
		return responder_error(qp, error, packet->psn);
	if (resp->ooo.first)
		return execute_ooo(qp, missed, unasked);
	return missed ? nak_next_hole(qp) : ENG_SUCCESS;
}
