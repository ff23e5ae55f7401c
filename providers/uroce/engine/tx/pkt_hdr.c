/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "pkt_hdr.h"

#include "engine/base/op.h"

const uint8_t message_services[] = {
	[ENG_RC] = WIRE_RC,	   [ENG_UC] = WIRE_UC,	      [ENG_UD] = WIRE_UD,
	[ENG_XRC_SEND] = WIRE_XRC, [ENG_XRC_RECV] = WIRE_XRC,
};

/*
 * rule S15: MigReq is always set.  flags: further header bits; psn: with or without AckReq;
 * dest_qpn: with or without BECN.
 */
static void put_bth(const struct eng_qp *qp, uint8_t opcode, unsigned int flags,
		    uint32_t payload_length, uint32_t dest_qpn, uint32_t psn, uint8_t *at)
{
	wire_put_bth(at, opcode,
		     WIRE_BTH_MIGREQ | flags | message_pad(payload_length) << WIRE_BTH_PAD_SHIFT,
		     qp->attr.pkey, dest_qpn & (WIRE_24BIT_MASK | WIRE_BTH_BECN), psn);
}

/* Writes the extension headers behind the BTH.  Returns the length of all headers. */
static uint32_t put_extensions(const struct wire_packet *packet, uint8_t opcode, uint8_t *at)
{
	return WIRE_BTH_BYTES + wire_build_extensions(packet, opcode, at + WIRE_BTH_BYTES);
}

static uint8_t operation_of(const struct op_row *row, uint32_t index, uint32_t packets)
{
	if (packets == 1)
		return row->only;
	if (index == 0)
		return row->first;
	return index == packets - 1 ? row->last : row->middle;
}

bool message_is_defined(const struct eng_qp *qp, uint8_t op)
{
	/* RC supports all operations. */
	return qp->type == ENG_RC ||
	       wire_op_header_length(message_services[qp->type] | op_row(op)->only) != 0;
}

uint8_t message_opcode(const struct eng_qp *qp, const struct eng_send_wqe *wqe, uint32_t index)
{
	return message_services[qp->type] | operation_of(op_row(wqe->op), index, wqe->packets);
}

/* Fields of FETH, RETH and AtomicETH. */
static void fill_remote(const struct eng_send_wqe *wqe, uint32_t offset, struct wire_packet *packet)
{
	packet->va = wqe->remote.va + offset;
	packet->rkey = wqe->remote.rkey;
	packet->dma_length = wqe->length - offset;
	packet->flush = wqe->remote.flush;
	if (op_row(wqe->op)->response != OP_ATOMIC_RESPONSE)
		return;
	packet->compare = wqe->remote.compare_add;
	packet->swap_add = wqe->op == ENG_COMPARE_SWAP ? wqe->remote.swap : wqe->remote.compare_add;
}

static void fill_datagram(const struct eng_qp *qp, const struct eng_send_wqe *wqe,
			  struct wire_packet *packet)
{
	/* A Q_Key with the high bit set selects the QP's own Q_Key (IBA: controlled Q_Keys). */
	packet->qkey = wqe->ud.qkey & 0x80000000u ? qp->attr.qkey : wqe->ud.qkey;
	packet->src_qpn = qp->qpn;
}

/* Fills the fields of all extension headers; opcode selects those that are written. */
static uint32_t request_extensions(const struct eng_qp *qp, const struct eng_send_wqe *wqe,
				   uint32_t index, uint8_t opcode, uint8_t *at)
{
	struct wire_packet packet;

	if (qp->type == ENG_UD)
		fill_datagram(qp, wqe, &packet);
	else
		fill_remote(wqe, index * qp->attr.mtu, &packet);
	packet.immediate = wqe->immediate;
	packet.invalidate_rkey = wqe->immediate;
	packet.xrc_srqn = wqe->xrc_srqn;
	return put_extensions(&packet, opcode, at);
}

inline uint32_t message_request(const struct eng_qp *qp, const struct eng_send_wqe *wqe,
				uint32_t index, uint8_t opcode, uint32_t payload_length,
				uint32_t ackreq, uint8_t *at)
{
	uint32_t dest_qpn =
		qp->type == ENG_UD ? wqe->ud.dest_qpn & WIRE_24BIT_MASK : qp->attr.dest_qpn;
	/* rules S6, S15: SE concerns a receive completion, so it is set only where there is one. */
	bool solicited = (wqe->flags & ENG_SOLICITED) && index == wqe->packets - 1 &&
			 op_row(wqe->op)->needs_receive;

	put_bth(qp, opcode, solicited ? WIRE_BTH_SE : 0, payload_length, dest_qpn,
		psn_add(wqe->first_psn, index) | ackreq, at);
	return wire_op_headers(opcode) & WIRE_HAS_EXTENSIONS
		       ? request_extensions(qp, wqe, index, opcode, at)
		       : WIRE_BTH_BYTES;
}

uint32_t message_read_part(const struct eng_qp *qp, const struct eng_send_wqe *wqe, uint32_t index,
			   uint32_t packets, uint8_t *at)
{
	uint8_t opcode = message_opcode(qp, wqe, index);
	struct wire_packet packet;

	fill_remote(wqe, index * qp->attr.mtu, &packet);
	if (index + packets < wqe->packets)
		packet.dma_length = packets * qp->attr.mtu;
	put_bth(qp, opcode, 0, 0, qp->attr.dest_qpn,
		psn_add(wqe->first_psn, index) | WIRE_BTH_ACKREQ, at);
	return put_extensions(&packet, opcode, at);
}

uint32_t message_ack_probe(const struct eng_qp *qp, uint32_t psn, uint8_t *at)
{
	uint8_t opcode = message_services[qp->type] | WIRE_SEND_ONLY;
	struct wire_packet packet = { .xrc_srqn = 0 };

	put_bth(qp, opcode, 0, 0, qp->attr.dest_qpn, psn | WIRE_BTH_ACKREQ, at);
	return put_extensions(&packet, opcode, at);
}

uint32_t message_response(const struct eng_qp *qp, const struct message_response *fields,
			  uint8_t *at)
{
	uint8_t opcode = message_services[qp->type] | fields->operation;
	struct wire_packet packet;

	put_bth(qp, opcode, 0, fields->payload_length, qp->attr.dest_qpn | fields->becn,
		fields->psn, at);
	packet.syndrome = fields->syndrome;
	packet.msn = qp->resp.msn;
	packet.original = fields->original;
	return put_extensions(&packet, opcode, at);
}

inline uint32_t message_aeth(const struct eng_qp *qp, uint32_t psn, uint8_t syndrome, uint32_t becn,
			     uint8_t *at)
{
	put_bth(qp, message_services[qp->type] | WIRE_ACKNOWLEDGE, 0, 0, qp->attr.dest_qpn | becn,
		psn, at);
	wire_put_be32(at + WIRE_BTH_BYTES, (uint32_t)syndrome << 24 | qp->resp.msn);
	return WIRE_BTH_BYTES + WIRE_AETH_BYTES;
}

uint32_t message_cnp(const struct eng_qp *qp, uint8_t *at)
{
	const struct wire_packet packet = { .opcode = WIRE_CNP_OPCODE,
					    .pkey = qp->attr.pkey,
					    .congestion = WIRE_BECN,
					    .dest_qpn = qp->attr.dest_qpn };

	return wire_build_headers(&packet, at);
}
