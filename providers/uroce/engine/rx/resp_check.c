/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "responder.h"

#include "engine/tx/pkt_hdr.h"
#include "resp_res.h"

/* clang-format off */
const struct request_error_row request_error_rows[REQUEST_ERRORS] = {
	[REQUEST_RIGHT] = { 0, false, ENG_SUCCESS, ENG_EVENT_QP_FATAL },
	[REQUEST_PSN_SEQUENCE] = {
		AETH_NAK << 5 | NAK_PSN_SEQUENCE, false, ENG_SUCCESS, ENG_EVENT_QP_FATAL },
	[REQUEST_RNR] = { AETH_RNR_NAK << 5, false, ENG_SUCCESS, ENG_EVENT_QP_FATAL },
	[REQUEST_INVALID] = {
		AETH_NAK << 5 | NAK_INVALID_REQUEST, true,
		ENG_WR_FLUSH_ERR, ENG_EVENT_QP_REQ_ERR },
	/*
	 * rule C18: the responder completes with a length error, the requester with an invalid
	 * request.
	 */
	[REQUEST_RECEIVE_LENGTH] = {
		AETH_NAK << 5 | NAK_INVALID_REQUEST, true,
		ENG_LOC_LEN_ERR, ENG_EVENT_QP_REQ_ERR },
	[REQUEST_REMOTE_ACCESS] = {
		AETH_NAK << 5 | NAK_REMOTE_ACCESS, true,
		ENG_WR_FLUSH_ERR, ENG_EVENT_QP_ACCESS_ERR },
	[REQUEST_RECEIVE_MEMORY] = {
		AETH_NAK << 5 | NAK_REMOTE_OPERATIONAL, true,
		ENG_LOC_PROT_ERR, ENG_EVENT_QP_FATAL },
	[REQUEST_INVALIDATE] = {
		AETH_ACK << 5, true,
		ENG_REM_INV_REQ_ERR, ENG_EVENT_QP_ACCESS_ERR },
};
/* clang-format on */

static enum request_error check_opcode_sequence(const struct eng_qp *qp,
						const struct wire_packet *packet)
{
	return wire_op_may_follow(qp->resp.previous_opcode, packet->opcode) ? REQUEST_RIGHT
									    : REQUEST_INVALID;
}

uint32_t flush_rights(const struct wire_packet *packet)
{
	return (packet->flush & WIRE_FLUSH_GLOBAL ? ENG_FLUSH_GLOBAL : 0) |
	       (packet->flush & WIRE_FLUSH_PERSISTENT ? ENG_FLUSH_PERSISTENT : 0);
}

/* Checks the operations that the QP as a whole allows (IBV_QP_ACCESS_FLAGS). */
static enum request_error check_opcode_enabled(const struct eng_qp *qp,
					       const struct wire_packet *packet)
{
	uint32_t need = 0;

	switch (wire_op_family(packet->opcode)) {
	case WIRE_FAMILY_SEND:
		break;
	case WIRE_FAMILY_WRITE:
	case WIRE_FAMILY_ATOMIC_WRITE:
		need = ENG_REMOTE_WRITE;
		break;
	case WIRE_FAMILY_READ:
		need = ENG_REMOTE_READ;
		break;
	case WIRE_FAMILY_ATOMIC:
		need = ENG_REMOTE_ATOMIC;
		break;
	case WIRE_FAMILY_FLUSH:
		need = flush_rights(packet);
		break;
	default:
		return REQUEST_INVALID;
	}
	return (qp->attr.access & need) == need ? REQUEST_RIGHT : REQUEST_INVALID;
}

static bool needs_receive(const struct wire_packet *packet, enum wire_family family)
{
	if (family == WIRE_FAMILY_SEND)
		return wire_op_position(packet->opcode) & (WIRE_FIRST | WIRE_ONLY);
	return family == WIRE_FAMILY_WRITE && (wire_op_headers(packet->opcode) & WIRE_HAS_IMMDT);
}

static enum request_error check_resources(const struct eng_qp *qp, const struct wire_packet *packet)
{
	enum wire_family family = wire_op_family(packet->opcode);

	/* rule C6: without a receive WQE nothing is consumed or executed. */
	if (!(qp->rq_shared && qp->ops->get_recv_wqe) && needs_receive(packet, family) &&
	    eng_ring_used(qp->rq) == 0)
		return REQUEST_RNR;
	if ((family == WIRE_FAMILY_READ || family == WIRE_FAMILY_ATOMIC ||
	     family == WIRE_FAMILY_ATOMIC_WRITE || family == WIRE_FAMILY_FLUSH) &&
	    !resp_res_has_room(qp))
		return REQUEST_INVALID;
	return REQUEST_RIGHT;
}

/* rule S1: all packets but the last carry exactly one MTU, the last one at least one byte. */
static bool payload_fits_position(const struct eng_qp *qp, const struct wire_packet *packet)
{
	switch (wire_op_position(packet->opcode)) {
	case WIRE_FIRST:
	case WIRE_MIDDLE:
		return packet->payload_length == qp->attr.mtu;
	case WIRE_LAST:
		return packet->payload_length > 0 && packet->payload_length <= qp->attr.mtu;
	case WIRE_ONLY:
		break;
	}
	return packet->payload_length <= qp->attr.mtu;
}

/* A WRITE must carry as many bytes as its RETH announced. */
static bool write_length_fits(const struct eng_qp *qp, const struct wire_packet *packet)
{
	const struct responder *resp = &qp->resp;
	enum wire_position position = wire_op_position(packet->opcode);
	uint32_t left;

	if (position & (WIRE_FIRST | WIRE_ONLY)) {
		if (packet->dma_length > ENG_MAX_MESSAGE)
			return false;
		left = packet->dma_length;
	} else {
		left = resp->write_length - resp->received;
	}
	if (position & (WIRE_LAST | WIRE_ONLY))
		return packet->payload_length == left;
	return packet->payload_length < left;
}

/* Annex A19: values of the FETH other than the defined ones are reserved. */
static bool flush_is_defined(const struct wire_packet *packet)
{
	return (packet->flush & WIRE_FLUSH_TYPES) &&
	       !(packet->flush & ~(uint32_t)WIRE_FLUSH_DEFINED);
}

static enum request_error check_length(const struct eng_qp *qp, const struct wire_packet *packet)
{
	enum wire_family family = wire_op_family(packet->opcode);

	if (family == WIRE_FAMILY_READ)
		return packet->dma_length <= ENG_MAX_MESSAGE ? REQUEST_RIGHT : REQUEST_INVALID;
	if (family == WIRE_FAMILY_ATOMIC)
		return packet->va % 8 == 0 ? REQUEST_RIGHT : REQUEST_INVALID;
	if (family == WIRE_FAMILY_ATOMIC_WRITE)
		return packet->va % 8 == 0 && packet->payload_length == 8 ? REQUEST_RIGHT
									  : REQUEST_INVALID;
	if (family == WIRE_FAMILY_FLUSH)
		return flush_is_defined(packet) ? REQUEST_RIGHT : REQUEST_INVALID;
	if (!payload_fits_position(qp, packet))
		return REQUEST_INVALID;
	if (family == WIRE_FAMILY_WRITE && !write_length_fits(qp, packet))
		return REQUEST_INVALID;
	return REQUEST_RIGHT;
}

/*
 * R_Key check and bounds check of the whole range of the RETH; a length of zero refers to no
 * memory.  Atomics, ATOMIC_WRITE and FLUSH are checked when they are executed.
 */
static enum request_error check_rkey(const struct eng_qp *qp, const struct wire_packet *packet)
{
	enum wire_family family = wire_op_family(packet->opcode);
	uint32_t need = family == WIRE_FAMILY_READ ? ENG_REMOTE_READ : ENG_REMOTE_WRITE;

	if (!(wire_op_headers(packet->opcode) & WIRE_HAS_RETH) || packet->dma_length == 0 ||
	    family == WIRE_FAMILY_ATOMIC_WRITE || family == WIRE_FAMILY_FLUSH)
		return REQUEST_RIGHT;
	if (!qp->ops->map_remote(qp->owner, packet->rkey, packet->va, packet->dma_length, need))
		return REQUEST_REMOTE_ACCESS;
	return REQUEST_RIGHT;
}

enum request_error check_unreliable(const struct eng_qp *qp, const struct wire_packet *packet)
{
	enum request_error error = check_opcode_enabled(qp, packet);

	if (error == REQUEST_RIGHT)
		error = check_length(qp, packet);
	if (error == REQUEST_RIGHT)
		error = check_rkey(qp, packet);
	return error;
}

enum request_error check_request(const struct eng_qp *qp, const struct wire_packet *packet)
{
	enum request_error error = check_opcode_sequence(qp, packet);

	if (error == REQUEST_RIGHT)
		error = check_opcode_enabled(qp, packet);
	if (error == REQUEST_RIGHT)
		error = check_resources(qp, packet);
	if (error == REQUEST_RIGHT)
		error = check_length(qp, packet);
	if (error == REQUEST_RIGHT)
		error = check_rkey(qp, packet);
	return error;
}
