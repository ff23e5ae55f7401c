/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "message.h"

#include "op.h"

const uint8_t message_services[] = {
	[ENG_RC] = WIRE_RC,	   [ENG_UC] = WIRE_UC,	      [ENG_UD] = WIRE_UD,
	[ENG_XRC_SEND] = WIRE_XRC, [ENG_XRC_RECV] = WIRE_XRC,
};

void message_headers(const struct eng_qp *qp, uint8_t operation, uint32_t psn,
		     struct wire_packet *packet)
{
	wire_packet_clear(packet);
	packet->opcode = message_services[qp->type] | operation;
	packet->migrated = true; /* rule S15 */
	packet->pkey = qp->attr.pkey;
	packet->dest_qpn = qp->attr.dest_qpn;
	packet->psn = psn;
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
	/* RC has all of them. */
	return qp->type == ENG_RC ||
	       wire_op_header_length(message_services[qp->type] | op_row(op)->only) != 0;
}

/* RETH and AtomicETH; the former is harmless where the opcode has none. */
static void fill_remote(const struct op_row *row, const struct eng_send_wqe *wqe, uint32_t offset,
			struct wire_packet *packet)
{
	packet->va = wqe->remote.va + offset;
	packet->rkey = wqe->remote.rkey;
	packet->dma_length = wqe->length - offset;
	if (row->answer != OP_ATOMIC_ANSWER)
		return;
	packet->compare = wqe->remote.compare_add;
	packet->swap_add = wqe->op == ENG_COMPARE_SWAP ? wqe->remote.swap : wqe->remote.compare_add;
}

static void fill_datagram(const struct eng_qp *qp, const struct eng_send_wqe *wqe,
			  struct wire_packet *packet)
{
	packet->dest_qpn = wqe->ud.dest_qpn;
	/* A Q_Key with the high bit set stands for the QP's own (IBA: controlled Q_Keys). */
	packet->qkey = wqe->ud.qkey & 0x80000000u ? qp->attr.qkey : wqe->ud.qkey;
	packet->src_qpn = qp->qpn;
}

void message_request(const struct eng_qp *qp, const struct eng_send_wqe *wqe, uint32_t index,
		     struct wire_packet *packet)
{
	const struct op_row *row = op_row(wqe->op);

	message_headers(qp, operation_of(row, index, wqe->packets), psn_add(wqe->first_psn, index),
			packet);
	if (row->carries_payload) {
		packet->payload_length = message_packet_length(wqe->length, qp->attr.mtu, index);
		packet->pad_count = (uint8_t)(-packet->payload_length & 3); /* rule S1 */
		/* rules S6, S15: SE is about a receive completion, so only where there is one. */
		packet->solicited = (wqe->flags & ENG_SOLICITED) && row->needs_receive &&
				    index == wqe->packets - 1;
		packet->immediate = wqe->immediate;
		packet->invalidate_rkey = wqe->immediate;
	}
	if (qp->type == ENG_UD)
		fill_datagram(qp, wqe, packet);
	else
		fill_remote(row, wqe, index * qp->attr.mtu, packet);
	packet->xrc_srqn = wqe->xrc_srqn;
}

void message_solicitation(const struct eng_qp *qp, uint32_t psn, struct wire_packet *packet)
{
	message_headers(qp, WIRE_SEND_ONLY, psn, packet);
	packet->ack_request = true;
}
