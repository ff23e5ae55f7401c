/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "responder.h"

#include "engine/base/sge.h"

/*
 * Drops the current message.  Its receive WQE stays for the next message, as it has no completion.
 */
static void break_off(struct eng_qp *qp)
{
	qp->resp.previous_opcode = -1;
	count(qp, ENG_COUNT_DROPPED);
}

static enum request_error execute(struct eng_qp *qp, const struct wire_packet *packet)
{
	enum request_error error = check_unreliable(qp, packet);

	if (error != REQUEST_RIGHT)
		return error;
	return wire_op_family(packet->opcode) == WIRE_FAMILY_SEND ? responder_send(qp, packet)
								  : responder_write(qp, packet);
}

enum eng_status unreliable_receive(struct eng_qp *qp, const struct wire_packet *packet,
				   uint64_t now)
{
	struct responder *resp = &qp->resp;
	enum wire_position position = wire_op_position(packet->opcode);
	int32_t distance = psn_diff(packet->psn, resp->expected_psn);
	enum request_error error;

	(void)now;
	if (!can_respond(qp) || distance < 0) {
		/* A duplicate or a reordered packet counts as lost. */
		count(qp, ENG_COUNT_DROPPED);
		return ENG_SUCCESS;
	}
	if (distance > 0 && resp->previous_opcode >= 0)
		break_off(qp);
	resp->expected_psn = psn_add(packet->psn, 1);
	responder_establish(qp);
	if (!wire_op_may_follow(resp->previous_opcode, packet->opcode)) {
		if (resp->previous_opcode >= 0)
			break_off(qp);
		if (!(position & (WIRE_FIRST | WIRE_ONLY))) {
			count(qp, ENG_COUNT_DROPPED);
			return ENG_SUCCESS;
		}
	}
	error = execute(qp, packet);
	if (error == REQUEST_RECEIVE_MEMORY)
		return responder_error(qp, error, packet->psn);
	if (error != REQUEST_RIGHT)
		break_off(qp);
	else
		resp->previous_opcode = position & (WIRE_LAST | WIRE_ONLY) ? -1 : packet->opcode;
	return ENG_SUCCESS;
}

/* An IPv4 header is in the second half of the GRH, after zeros. */
static bool came_by_ipv6(const struct wire_packet *packet)
{
	return packet->network_header && packet->network_header[0] >> 4 == 6;
}

static void complete_datagram(struct eng_qp *qp, const struct wire_packet *packet)
{
	struct responder *resp = &qp->resp;
	bool immediate = wire_op_headers(packet->opcode) & WIRE_HAS_IMMDT;
	struct eng_wc wc = {
		.wr_id = resp->wqe.wr_id,
		.op = immediate ? ENG_SEND_IMM : ENG_SEND,
		.byte_len = ENG_GRH_BYTES + packet->payload_length,
		.immediate = packet->immediate,
		.flags = ENG_WC_GRH | (immediate ? ENG_WC_IMMEDIATE : 0),
		.src_qpn = packet->src_qpn,
		.receive = true,
		.solicited = packet->solicited,
		.ipv6 = came_by_ipv6(packet),
	};

	resp->taken = false;
	resp->wqes_done++;
	qp->ops->complete(qp->owner, &wc);
	count(qp, ENG_COUNT_RECEIVES);
}

/* Copies the network header to the first 40 bytes of the receive buffer, then the payload. */
static bool write_datagram(struct eng_qp *qp, const struct wire_packet *packet)
{
	static const uint8_t none[ENG_GRH_BYTES];
	struct responder *resp = &qp->resp;
	const uint8_t *header = packet->network_header ? packet->network_header : none;

	return sge_scatter(qp, qp->recv_sge, resp->wqe.sge_count, 0, header, ENG_GRH_BYTES) &&
	       sge_scatter(qp, qp->recv_sge, resp->wqe.sge_count, ENG_GRH_BYTES, packet->payload,
			   packet->payload_length);
}

enum eng_status datagram_receive(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now)
{
	struct responder *resp = &qp->resp;

	(void)now;
	/* rule S14: a packet with a wrong Q_Key is dropped before any other check. */
	if (!can_respond(qp) || packet->qkey != qp->attr.qkey ||
	    (!resp->taken && responder_get_recv_wqe(qp) != REQUEST_RIGHT)) {
		count(qp, ENG_COUNT_DROPPED);
		return ENG_SUCCESS;
	}
	/* Too long for the buffer: the datagram is dropped, the buffer stays for the next one. */
	if (ENG_GRH_BYTES + packet->payload_length > resp->wqe.length) {
		count(qp, ENG_COUNT_DROPPED);
		return ENG_SUCCESS;
	}
	if (!write_datagram(qp, packet))
		return responder_error(qp, REQUEST_RECEIVE_MEMORY, packet->psn);
	complete_datagram(qp, packet);
	return ENG_SUCCESS;
}
