/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A RoCEv2 packet (the UDP payload) as a host-order structure.  wire_parse() is the only way by
 * which received bytes come in: after it no code indexes into raw header bytes.
 */
#ifndef UROCE_WIRE_PACKET_H
#define UROCE_WIRE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "bytes.h"
#include "opcode.h"

#define WIRE_UDP_PORT 4791
#define WIRE_BTH_BYTES 12
#define WIRE_ICRC_BYTES 4
#define WIRE_AETH_BYTES 4
#define WIRE_MAX_MTU 4096
/* BTH and the largest set of extension headers (XRCETH + AtomicETH) with room to spare. */
#define WIRE_MAX_HEADER_BYTES 64
#define WIRE_MAX_PACKET_BYTES (WIRE_MAX_HEADER_BYTES + WIRE_MAX_MTU + WIRE_ICRC_BYTES)
#define WIRE_DEFAULT_PKEY 0xffff
#define WIRE_24BIT_MASK 0xffffffu
#define WIRE_MULTICAST_QPN 0xffffffu
/* BTH byte 1, and bytes 8..11 as one number. */
#define WIRE_BTH_SE 0x80
#define WIRE_BTH_MIGREQ 0x40
#define WIRE_BTH_PAD_SHIFT 4
#define WIRE_BTH_ACKREQ 0x80000000u
#define WIRE_BTH_BECN 0x40000000u /* beside the number of the queue pair */

/* What is said of congestion: the two bits of the BTH have their places in its fifth byte. */
enum wire_congestion {
	WIRE_CE = 0x01,	  /* the IP header's ECN is 11b: set by the caller, not by wire_parse() */
	WIRE_BECN = 0x40, /* packets the other way have met congestion */
	WIRE_FECN = 0x80, /* this one has */
};

struct wire_packet {
	/* BTH */
	uint8_t opcode;
	bool solicited;	   /* SE */
	bool migrated;	   /* MigReq: 1 on transmit, ignored on receipt (rule S15) */
	uint8_t pad_count; /* 0..3 */
	uint8_t version;   /* TVer */
	uint16_t pkey;
	uint8_t congestion; /* set of enum wire_congestion */
	uint32_t dest_qpn;  /* 24 bits */
	bool ack_request;
	uint32_t psn; /* 24 bits */

	/* Extension headers; 0 where wire_op_headers(opcode) does not name the header. */
	uint32_t xrc_srqn;	  /* XRCETH, 24 bits */
	uint32_t qkey;		  /* DETH */
	uint32_t src_qpn;	  /* DETH, 24 bits */
	uint64_t va;		  /* RETH, AtomicETH */
	uint32_t rkey;		  /* RETH, AtomicETH */
	uint32_t dma_length;	  /* RETH: bytes */
	uint64_t swap_add;	  /* AtomicETH: swap (CmpSwap) or add (FetchAdd) operand */
	uint64_t compare;	  /* AtomicETH */
	uint8_t syndrome;	  /* AETH */
	uint32_t msn;		  /* AETH, 24 bits */
	uint64_t original;	  /* AtomicAckETH: value before the operation */
	uint32_t immediate;	  /* ImmDt, the 32 bits as a host-order number */
	uint32_t invalidate_rkey; /* IETH */
	uint32_t flush;		  /* FETH: placement type in bits 3..0, selectivity in bits 5..4 */

	/*
	 * UD: the 40 bytes that stand for the GRH in front of a received datagram; IPv4 headers in
	 * the last 20 of them.  Set by the caller, which knows the network header; NULL after
	 * wire_parse().
	 */
	const uint8_t *network_header;

	/* Points into the caller's buffer; pad bytes and ICRC are not counted. */
	const uint8_t *payload;
	uint32_t payload_length;
};

/*
 * All zeros.  In halves, each of which the compiler makes four stores of; for the whole it makes a
 * loop.
 */
static inline void wire_packet_clear(struct wire_packet *packet)
{
	memset(packet, 0, sizeof(*packet) / 2);
	memset((uint8_t *)packet + sizeof(*packet) / 2, 0, sizeof(*packet) / 2);
}

enum wire_error {
	WIRE_OK,
	WIRE_TOO_SHORT,	  /* the headers, pad and ICRC do not fit */
	WIRE_TOO_LONG,	  /* more payload than any path MTU allows */
	WIRE_BAD_VERSION, /* TVer is not 0 */
	WIRE_BAD_OPCODE,  /* not defined for its service */
	WIRE_BAD_LENGTH,  /* payload where none may be, or not a multiple of four with the pad */
};
const char *wire_error_name(enum wire_error error);

/*
 * Parse one UDP payload of length bytes, ICRC included (its value is not checked here, see
 * icrc.h).  On WIRE_OK all of packet is set, padding included, and points into bytes.  Never reads
 * beyond length.  The bytes may change meanwhile, as in memory that the peer can write to: packet
 * is then one of those that were there, or of parts of them, but its lengths always fit each other.
 */
enum wire_error wire_parse(const uint8_t *bytes, size_t length, struct wire_packet *packet);

/*
 * Write BTH and the extension headers of packet->opcode to bytes, which has room for
 * WIRE_MAX_HEADER_BYTES; returns their length.  Payload, pad and ICRC are the caller's.
 */
unsigned int wire_build_headers(const struct wire_packet *packet, uint8_t *bytes);

/*
 * The same in two parts, for the data path: the BTH from numbers, flags a set of WIRE_BTH_SE,
 * WIRE_BTH_MIGREQ and the pad count at WIRE_BTH_PAD_SHIFT, psn with WIRE_BTH_ACKREQ or without; and
 * behind it the extension headers of opcode.  Of packet only the fields that these have are read;
 * their length is returned.
 */
static inline void wire_put_bth(uint8_t *at, uint8_t opcode, unsigned int flags, uint16_t pkey,
				uint32_t dest_qpn, uint32_t psn)
{
	wire_put_be32(at, (uint32_t)opcode << 24 | flags << 16 | pkey);
	wire_put_be32(at + 4, dest_qpn);
	wire_put_be32(at + 8, psn);
}
unsigned int wire_build_extensions(const struct wire_packet *packet, uint8_t opcode, uint8_t *at);

#endif
