/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Messages and their packets: every packet is a function of (WQE, PSN), so nothing about packets
 * is remembered and a retry is setting the next PSN back.
 */
#ifndef UROCE_ENGINE_TX_PKT_HDR_H
#define UROCE_ENGINE_TX_PKT_HDR_H

#include "engine/base/op.h"
#include "engine/qp_priv.h"

/* rule S1: max(1, ceil(length / mtu)) packets. */
static inline uint32_t message_packets(uint32_t length, uint32_t mtu)
{
	return length == 0 ? 1 : (length - 1) / mtu + 1;
}

/* Bytes of payload in packet index of a message of length bytes. */
static inline uint32_t message_packet_length(uint32_t length, uint32_t mtu, uint32_t index)
{
	uint32_t rest = length - index * mtu;

	return rest < mtu ? rest : mtu;
}

/* rule S1: bytes of pad behind so many of payload. */
static inline uint32_t message_pad(uint32_t payload_length)
{
	return -payload_length & 3;
}

/* Which packet of the message psn is, counted from 0. */
static inline uint32_t wqe_packet_index(const struct eng_send_wqe *wqe, uint32_t psn)
{
	return psn_sub(psn, wqe->first_psn);
}

/* The service bits of opcodes, by enum eng_qp_type. */
extern const uint8_t message_services[];

/*
 * A packet's headers are written to at, where there is room for WIRE_MAX_HEADER_BYTES; their length
 * is returned.
 *
 * Request packet index of wqe, whose payload begins index MTUs into the message.  A READ request
 * for a PSN inside the message asks for the rest from there (rule S12).  opcode and payload_length
 * are those of message_opcode() and message_payload(), ackreq is 0 or WIRE_BTH_ACKREQ: ack_req.h
 * says which.
 */
uint8_t message_opcode(const struct eng_qp *qp, const struct eng_send_wqe *wqe, uint32_t index);
uint32_t message_request(const struct eng_qp *qp, const struct eng_send_wqe *wqe, uint32_t index,
			 uint8_t opcode, uint32_t payload_length, uint32_t ackreq, uint8_t *at);

/* A READ request for so many response packets of wqe, from index on (rule S12). */
uint32_t message_read_part(const struct eng_qp *qp, const struct eng_send_wqe *wqe, uint32_t index,
			   uint32_t packets, uint8_t *at);

/* A SEND of no bytes with AckReq. */
uint32_t message_ack_probe(const struct eng_qp *qp, uint32_t psn, uint8_t *at);

/* A congestion notification; its reserved bytes count as a header. */
uint32_t message_cnp(const struct eng_qp *qp, uint8_t *at);

/* A response, of fields those that its operation has. */
struct message_response {
	uint8_t operation;
	uint8_t syndrome;
	uint32_t psn;
	uint32_t payload_length;
	uint32_t becn;	   /* 0 or WIRE_BTH_BECN */
	uint64_t original; /* Atomic: the value before */
};
uint32_t message_response(const struct eng_qp *qp, const struct message_response *fields,
			  uint8_t *at);

/* An Acknowledge: a positive one or a NAK. */
uint32_t message_aeth(const struct eng_qp *qp, uint32_t psn, uint8_t syndrome, uint32_t becn,
		      uint8_t *at);

/*
 * Does the QP's service have this operation, which is not local?  READs and Atomics exist on
 * reliable ones only.
 */
bool message_is_defined(const struct eng_qp *qp, uint8_t op);

/* Bytes of payload in packet index of wqe. */
static inline uint32_t message_payload(const struct eng_send_wqe *wqe, uint32_t mtu, uint32_t index)
{
	return op_row(wqe->op)->carries_payload ? message_packet_length(wqe->length, mtu, index)
						: 0;
}

/* PSNs that packet index takes: one, but a READ request takes all that are left. */
static inline uint32_t message_psns(const struct eng_send_wqe *wqe, uint32_t index)
{
	return wqe->op == ENG_READ ? wqe->packets - index : 1;
}

#endif
