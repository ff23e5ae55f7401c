/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Builds the headers of packets.  Every request packet but its AckReq is a function of (WQE, PSN),
 * so no state is kept for packets, and a retry only sets the next PSN back.
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

/* Number of payload bytes in packet index of a message of length bytes. */
static inline uint32_t message_packet_length(uint32_t length, uint32_t mtu, uint32_t index)
{
	uint32_t rest = length - index * mtu;

	return rest < mtu ? rest : mtu;
}

/* rule S1: number of pad bytes after this number of payload bytes. */
static inline uint32_t message_pad(uint32_t payload_length)
{
	return -payload_length & 3;
}

/* Index, from 0, of the packet with this PSN in its message. */
static inline uint32_t wqe_packet_index(const struct eng_send_wqe *wqe, uint32_t psn)
{
	return psn_sub(psn, wqe->first_psn);
}

/* Service bits of opcodes, by enum eng_qp_type. */
extern const uint8_t message_services[];

/* Returns the opcode of request packet number index, from 0, of wqe. */
uint8_t message_opcode(const struct eng_qp *qp, const struct eng_send_wqe *wqe, uint32_t index);

/*
 * The functions below write the headers of a packet to at, which must have room for
 * WIRE_MAX_HEADER_BYTES, and return their length.
 *
 * message_request(): request packet number index of wqe, whose payload starts index MTUs into the
 * message.  A READ request for a PSN inside the message requests the rest from there (rule S12).
 * opcode and payload_length are those of message_opcode() and message_payload(); ackreq is 0 or
 * WIRE_BTH_ACKREQ (see ack_req.h).
 */
uint32_t message_request(const struct eng_qp *qp, const struct eng_send_wqe *wqe, uint32_t index,
			 uint8_t opcode, uint32_t payload_length, uint32_t ackreq, uint8_t *at);

/* READ request for this number of response packets of wqe, from index on (rule S12). */
uint32_t message_read_part(const struct eng_qp *qp, const struct eng_send_wqe *wqe, uint32_t index,
			   uint32_t packets, uint8_t *at);

/* ACK probe: zero-length SEND with AckReq, with a PSN that has been acknowledged (ack_req.h). */
uint32_t message_ack_probe(const struct eng_qp *qp, uint32_t psn, uint8_t *at);

/* Congestion notification packet; its reserved bytes count as a header. */
uint32_t message_cnp(const struct eng_qp *qp, uint8_t *at);

/* Fields of a response; only those of its operation are used. */
struct message_response {
	uint8_t operation;
	uint8_t syndrome;
	uint32_t psn;
	uint32_t payload_length;
	uint32_t becn;	   /* 0 or WIRE_BTH_BECN */
	uint64_t original; /* Atomic: value before the operation */
};
uint32_t message_response(const struct eng_qp *qp, const struct message_response *fields,
			  uint8_t *at);

/* Acknowledge packet: ACK or NAK. */
uint32_t message_aeth(const struct eng_qp *qp, uint32_t psn, uint8_t syndrome, uint32_t becn,
		      uint8_t *at);

/*
 * Returns true if the QP's service supports this operation, which must not be a local one.  READs
 * and Atomics exist on reliable services only.
 */
bool message_is_defined(const struct eng_qp *qp, uint8_t op);

/* Number of payload bytes in packet index of wqe. */
static inline uint32_t message_payload(const struct eng_send_wqe *wqe, uint32_t mtu, uint32_t index)
{
	return op_row(wqe->op)->carries_payload ? message_packet_length(wqe->length, mtu, index)
						: 0;
}

/* Number of PSNs of packet index: 1, but a READ request uses all remaining ones of its message. */
static inline uint32_t message_psns(const struct eng_send_wqe *wqe, uint32_t index)
{
	return wqe->op == ENG_READ ? wqe->packets - index : 1;
}

#endif
