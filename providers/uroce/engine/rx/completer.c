/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "completer.h"

#include <string.h>

#include "engine/base/aeth.h"
#include "engine/base/op.h"
#include "engine/base/sge.h"
#include "engine/cc/cwnd.h"
#include "engine/credit.h"
#include "engine/recovery/loss.h"
#include "engine/recovery/read_retry.h"
#include "engine/recovery/retransmit.h"
#include "engine/tx/pkt_hdr.h"
#include "engine/tx/sq.h"
#include "ooo_rx.h"

/*
 * Advances unacked_psn by n packets, from packet from of the oldest request.  Returns their weight.
 */
static inline uint64_t pass(struct eng_qp *qp, const struct eng_send_wqe *wqe, uint32_t from,
			    uint32_t n)
{
	struct requester *req = &qp->req;
	uint64_t cost = cwnd_cost_between(qp, wqe, from, from + n);

	req->unacked_psn = psn_add(req->unacked_psn, n);
	if (from + n == wqe->packets)
		sq_retire(qp, wqe, ENG_SUCCESS);
	return cost;
}

/*
 * To be called when unacked_psn has advanced from PSN from, by packets of this weight.  After going
 * back, the response to a packet sent before may have advanced it beyond next_psn.
 */
static void progressed(struct eng_qp *qp, uint32_t from, uint64_t cost, uint64_t now)
{
	struct requester *req = &qp->req;

	if (psn_in(req->next_psn, from, psn_sub(req->unacked_psn, from)))
		req->next_psn = req->unacked_psn;
	cwnd_progress(qp, cost);
	loss_progress(qp, now);
	if (req->loss.state == LOSS_RECOVERY)
		retransmit_progress(qp);
	sq_retire_local(qp);
}

/*
 * Acknowledges the packets of the oldest request up to psn, whose READ or Atomic response has
 * arrived.
 */
static void oldest_got_response(struct eng_qp *qp, const struct eng_send_wqe *wqe, uint32_t psn,
				uint64_t now)
{
	uint32_t from = qp->req.unacked_psn;
	uint64_t cost = pass(qp, wqe, wqe_packet_index(wqe, from), psn_sub(psn, from) + 1);

	progressed(qp, from, cost, now);
}

/*
 * Acknowledges the n packets from unacked_psn on, as far as an ACK can: SENDs and WRITEs.  Returns
 * false at a READ or Atomic, which only its own response completes (rule S8).
 */
static bool acknowledge(struct eng_qp *qp, uint32_t n, uint64_t now)
{
	const uint32_t from = qp->req.unacked_psn;
	uint64_t cost = 0;

	while (n > 0) {
		const struct eng_send_wqe *wqe = sq_at(qp, qp->sq->tail);
		uint32_t index = wqe_packet_index(wqe, qp->req.unacked_psn);
		uint32_t left = wqe->packets - index;
		uint8_t answer = op_row(wqe->op)->response;

		if (answer == OP_LOCAL) {
			sq_retire(qp, wqe, ENG_SUCCESS);
			continue;
		}
		if (left > n)
			left = n;
		if (answer != OP_ACKED && !read_retry_is_active(qp))
			break;
		if (answer != OP_ACKED)
			left = read_retry_consume(qp, left);
		if (left == 0)
			break;
		cost += pass(qp, wqe, index, left);
		n -= left;
	}
	if (cost > 0)
		progressed(qp, from, cost, now);
	return n == 0;
}

/*
 * Called when a missing response has arrived: acknowledges the responses after it that have already
 * been placed.
 */
static __attribute__((noinline)) void pass_placed(struct eng_qp *qp, uint64_t now)
{
	const struct read_retry *read_retry = &qp->req.read_retry;
	int32_t behind = psn_diff(read_retry->placed_max_psn, qp->req.unacked_psn);

	if (behind > 0)
		acknowledge(qp, (uint32_t)behind, now);
	retransmit_responded(qp);
}

void completer_sent(struct eng_qp *qp, uint64_t now)
{
	acknowledge(qp, psn_sub(qp->req.next_psn, qp->req.unacked_psn), now);
	if (sq_error(qp) == ENG_SUCCESS)
		sq_raise_drained(qp);
}

/* Returns the error of the oldest request, which a NAK that ends the QP refers to. */
static enum eng_status fatal_nak(struct eng_qp *qp, uint8_t code)
{
	switch (code) {
	case NAK_INVALID_REQUEST:
		return ENG_REM_INV_REQ_ERR;
	case NAK_REMOTE_ACCESS:
		return ENG_REM_ACCESS_ERR;
	case NAK_REMOTE_OPERATIONAL:
		return ENG_REM_OP_ERR;
	default:
		count(qp, ENG_COUNT_DROPPED);
		return ENG_SUCCESS;
	}
}

/*
 * rule S11: a NAK for PSN n acknowledges SENDs and WRITEs before n.  If the response to a READ or
 * Atomic before n is missing, it is an implied NAK for that request (rule S8), and an RNR NAK also
 * starts the RNR NAK timer (rule S10).  If then no RNR retry is left, only the implied NAK is
 * handled, as the RNR NAK is for a later request than the oldest.
 */
static enum eng_status receive_nak(struct eng_qp *qp, const struct wire_packet *packet,
				   uint64_t now)
{
	uint32_t before = psn_sub(packet->psn, qp->req.unacked_psn);
	bool rnr = syndrome_kind(packet->syndrome) == AETH_RNR_NAK;
	bool sequence = syndrome_kind(packet->syndrome) == AETH_NAK &&
			syndrome_code(packet->syndrome) == NAK_PSN_SEQUENCE;
	bool answered;

	if (sequence)
		count(qp, ENG_COUNT_RECEIVED_SEQ_NAK);
	answered = acknowledge(qp, before, now);
	if (rnr && (answered || loss_has_rnr_retries(qp)))
		return loss_rnr_nak(qp, syndrome_code(packet->syndrome), now);
	if (sequence && answered && retransmit_on_nak(qp, now))
		return ENG_SUCCESS;
	if (sequence || !answered)
		return loss_nak(qp, now);
	return fatal_nak(qp, syndrome_code(packet->syndrome));
}

static void note_unsolicited_ack(struct eng_qp *qp, const struct wire_packet *packet)
{
	/* After an ACK probe the ACK may be its response, which adapters send as well. */
	if (qp->req.loss.ack_probe_at == 0)
		ooo_peer_reported_credits(qp, syndrome_code(packet->syndrome));
}

/*
 * Handles an ACK for an acknowledged PSN: rules C8, C9, and nothing but credits.  Its PSN is that
 * of the peer's last positive ACK, which may be older than a PSN that a NAK has acknowledged since;
 * its credits cannot move LSN back.
 */
static void receive_unsolicited(struct eng_qp *qp, const struct wire_packet *packet)
{
	count(qp, ENG_COUNT_UNSOLICITED_ACKS_RECEIVED);
	credit_update_unsolicited(qp, packet->syndrome, packet->msn);
	/*
	 * With duplicates in flight the ACK may be for one of them, which adapters acknowledge as
	 * well; before RTS nothing has been sent.
	 */
	if (qp->state == ENG_RTR || retransmit_duplicates_are_acked(&qp->req))
		note_unsolicited_ack(qp, packet);
	if (qp->req.retransmit.peer == PEER_UNANSWERED)
		retransmit_announce(qp);
}

/*
 * Returns true if a READ response with this PSN has the right length and position; *offset is its
 * place in the message.
 */
static bool read_response_fits(const struct eng_qp *qp, const struct eng_send_wqe *wqe,
			       const struct wire_packet *packet, uint32_t *offset)
{
	uint32_t index = wqe_packet_index(wqe, packet->psn);
	enum wire_position position = wire_op_position(packet->opcode);
	bool last = index == wqe->packets - 1;

	*offset = index * qp->attr.mtu;
	/* rule S12: the response to a partial request may begin at any packet. */
	if (last != (position == WIRE_LAST || position == WIRE_ONLY) &&
	    (last || !read_retry_may_end(qp, packet->psn)))
		return false;
	if (wqe->op != ENG_READ)
		return packet->payload_length == 0; /* ATOMIC_WRITE, FLUSH */
	return packet->payload_length == message_packet_length(wqe->length, qp->attr.mtu, index);
}

static enum eng_status read_response(struct eng_qp *qp, const struct eng_send_wqe *wqe,
				     const struct wire_packet *packet, uint64_t now)
{
	uint32_t offset;

	if (!read_response_fits(qp, wqe, packet, &offset))
		return ENG_BAD_RESP_ERR;
	if (!sge_scatter(qp, wqe->data.sge, wqe->sge_count, offset, packet->payload,
			 packet->payload_length))
		return ENG_LOC_PROT_ERR;
	if (read_retry_is_active(qp))
		read_retry_consume(qp, 1);
	oldest_got_response(qp, wqe, packet->psn, now);
	return ENG_SUCCESS;
}

static enum eng_status atomic_response(struct eng_qp *qp, const struct eng_send_wqe *wqe,
				       const struct wire_packet *packet, uint64_t now)
{
	uint8_t original[sizeof(packet->original)];

	/* The application expects the old value in host byte order. */
	memcpy(original, &packet->original, sizeof(original));
	if (!sge_scatter(qp, wqe->data.sge, wqe->sge_count, 0, original, sizeof(original)))
		return ENG_LOC_PROT_ERR;
	oldest_got_response(qp, wqe, packet->psn, now);
	return ENG_SUCCESS;
}

/* Handles a READ or Atomic response whose PSN is in flight. */
static enum eng_status receive_response(struct eng_qp *qp, const struct wire_packet *packet,
					uint64_t now)
{
	struct requester *req = &qp->req;
	enum op_response answer = wire_op_family(packet->opcode) == WIRE_FAMILY_ATOMIC_ACK
					  ? OP_ATOMIC_RESPONSE
					  : OP_READ_RESPONSE;
	const struct eng_send_wqe *wqe;

	if (!acknowledge(qp, psn_sub(packet->psn, req->unacked_psn), now)) {
		/*
		 * rule S8: an earlier response is missing.  Only the missing ones are requested
		 * again if this one can be placed.
		 */
		if (answer == OP_READ_RESPONSE && read_retry_place(qp, packet, now))
			return ENG_SUCCESS;
		return loss_nak(qp, now);
	}
	wqe = sq_at(qp, qp->sq->tail);
	if (op_row(wqe->op)->response != answer) {
		count(qp, ENG_COUNT_DROPPED);
		return ENG_SUCCESS;
	}
	return answer == OP_ATOMIC_RESPONSE ? atomic_response(qp, wqe, packet, now)
					    : read_response(qp, wqe, packet, now);
}

static bool has_aeth(const struct wire_packet *packet)
{
	return wire_op_headers(packet->opcode) & WIRE_HAS_AETH;
}

static enum eng_status answered(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now)
{
	enum eng_status verdict = receive_response(qp, packet, now);

	if (verdict == ENG_SUCCESS)
		retransmit_responded(qp);
	return verdict;
}

/* rule S8: a later ACK is an implied NAK for a READ or Atomic without response. */
static enum eng_status receive_beyond(struct eng_qp *qp, const struct wire_packet *packet,
				      uint64_t now)
{
	/* An ACK for a READ repeats its last response, so it is unsolicited (rule C8). */
	if (read_retry_is_read(qp, packet->psn))
		note_unsolicited_ack(qp, packet);
	return read_retry_implied_nak(qp, packet->psn, now) ? ENG_SUCCESS : loss_nak(qp, now);
}

static enum eng_status receive_unacknowledged(struct eng_qp *qp, const struct wire_packet *packet,
					      uint64_t now)
{
	enum wire_family family = wire_op_family(packet->opcode);
	bool positive = !has_aeth(packet) || syndrome_kind(packet->syndrome) == AETH_ACK;

	if (positive && has_aeth(packet)) {
		credit_update(qp, packet->syndrome, packet->msn);
		if (qp->req.retransmit.peer == PEER_UNANSWERED)
			retransmit_announce(qp);
	}
	if (family != WIRE_FAMILY_ACK) {
		if (positive)
			return answered(qp, packet, now);
		count(qp, ENG_COUNT_DROPPED);
		return ENG_SUCCESS;
	}
	if (!positive)
		return receive_nak(qp, packet, now);
	if (!acknowledge(qp, psn_sub(packet->psn, qp->req.unacked_psn) + 1, now))
		return receive_beyond(qp, packet, now);
	retransmit_acknowledged(qp, now);
	return ENG_SUCCESS;
}

/*
 * Returns true for an ACK of an acknowledged PSN that reports credits.  Before RTS no PSNs are
 * known, but nothing has been sent either: initial credits have MSN 0 (rule C9), and any other MSN
 * belongs to an earlier connection.
 */
static bool brings_credits(const struct eng_qp *qp, const struct wire_packet *packet)
{
	if (qp->state == ENG_RTR)
		return packet->msn == 0;
	return can_request(qp) && psn_diff(packet->psn, qp->req.unacked_psn) < 0;
}

/* Does the same as completer_receive() in the cases that completer.h names, with fewer checks. */
bool completer_receive_fast(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now)
{
	struct requester *req = &qp->req;
	const struct eng_send_wqe *wqe;

	if (packet->psn != req->unacked_psn || syndrome_kind(packet->syndrome) != AETH_ACK ||
	    qp->state != ENG_RTS || req->end_psn == req->unacked_psn ||
	    req->next_psn != req->end_psn || read_retry_is_active(qp) ||
	    req->loss.state != LOSS_OPEN)
		return false;
	wqe = sq_at(qp, qp->sq->tail);
	if (wqe->packets != 1 || op_row(wqe->op)->response != OP_ACKED ||
	    req->retransmit.peer == PEER_UNANSWERED)
		return false;
	credit_update(qp, packet->syndrome, packet->msn);
	req->unacked_psn = psn_add(req->unacked_psn, 1);
	cwnd_progress(qp, cwnd_cost(qp, wqe, 1));
	sq_retire(qp, wqe, ENG_SUCCESS);
	loss_progress(qp, now);
	if (qp->sq->tail != req->begun)
		sq_retire_local(qp);
	loss_measure(qp, now);
	return true;
}

enum eng_status completer_receive(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now)
{
	struct requester *req = &qp->req;
	bool plain_ack = wire_op_family(packet->opcode) == WIRE_FAMILY_ACK &&
			 syndrome_kind(packet->syndrome) == AETH_ACK;
	enum eng_status verdict = ENG_SUCCESS;

	if (has_aeth(packet) && syndrome_kind(packet->syndrome) == AETH_RESERVED) {
		count(qp, ENG_COUNT_DROPPED);
		return verdict;
	}
	if (can_request(qp) && psn_in(packet->psn, req->unacked_psn, sq_in_flight(qp))) {
		uint32_t before = req->unacked_psn;

		verdict = receive_unacknowledged(qp, packet, now);
		if (req->unacked_psn != before) {
			if (read_retry_is_active(qp))
				pass_placed(qp, now);
			loss_measure(qp, now);
		}
		if (verdict == ENG_SUCCESS)
			verdict = sq_error(qp);
		if (verdict == ENG_SUCCESS)
			sq_raise_drained(qp);
	} else if (plain_ack && brings_credits(qp, packet)) {
		receive_unsolicited(qp, packet);
		if (req->loss.ack_probe_at)
			retransmit_on_ack_probe(qp, packet, now);
	} else {
		/*
		 * rule S8: duplicate and ghost ACKs acknowledge nothing; a duplicate READ response
		 * may extend the timeout.
		 */
		count(qp, ENG_COUNT_DROPPED);
		if (wire_op_family(packet->opcode) == WIRE_FAMILY_READ_RESPONSE &&
		    can_request(qp) && psn_diff(packet->psn, req->unacked_psn) < 0)
			loss_repeated_response(qp, now);
	}
	return verdict;
}
