/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Messages and their packets: every packet is a function of (WQE, PSN), so nothing about packets
 * is remembered and a retry is setting the next PSN back.
 */
#ifndef UROCE_ENGINE_MESSAGE_H
#define UROCE_ENGINE_MESSAGE_H

#include "qp.h"

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

static inline uint32_t wqe_last_psn(const struct eng_send_wqe *wqe)
{
	return psn_add(wqe->first_psn, wqe->packets - 1);
}

/* Which packet of the message psn is, counted from 0. */
static inline uint32_t wqe_packet_index(const struct eng_send_wqe *wqe, uint32_t psn)
{
	return psn_sub(psn, wqe->first_psn);
}

/* The service bits of opcodes, by enum eng_qp_type. */
extern const uint8_t message_services[];

/* What the headers of all packets to the peer have; all else of packet is 0. */
void message_headers(const struct eng_qp *qp, uint8_t operation, uint32_t psn,
		     struct wire_packet *packet);

/*
 * Request packet index of wqe, whose payload begins index MTUs into the message.
 * packet->payload_length is set, packet->payload is not.  A READ request for a PSN inside the
 * message asks for the rest from there (rule S12).  AckReq is not set: solicit.h says where it is.
 */
void message_request(const struct eng_qp *qp, const struct eng_send_wqe *wqe, uint32_t index,
		     struct wire_packet *packet);

/* A SEND of no bytes with AckReq. */
void message_solicitation(const struct eng_qp *qp, uint32_t psn, struct wire_packet *packet);

/*
 * Does the QP's service have this operation, which is not local?  READs and Atomics exist on
 * reliable ones only.
 */
bool message_is_defined(const struct eng_qp *qp, uint8_t op);

/* PSNs that packet index takes: one, but a READ request takes all that are left. */
static inline uint32_t message_psns(const struct eng_send_wqe *wqe, uint32_t index)
{
	return wqe->op == ENG_READ ? wqe->packets - index : 1;
}

#endif
