/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A RoCEv2 packet (the UDP payload) as a host-order structure.  All received packets pass through
 * wire_parse(); after it no code indexes into header bytes.
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
/* At least BTH and the largest set of extension headers (XRCETH + AtomicETH). */
#define WIRE_MAX_HEADER_BYTES 64
#define WIRE_MAX_PACKET_BYTES (WIRE_MAX_HEADER_BYTES + WIRE_MAX_MTU + WIRE_ICRC_BYTES)
#define WIRE_DEFAULT_PKEY 0xffff
#define WIRE_24BIT_MASK 0xffffffu
#define WIRE_MULTICAST_QPN 0xffffffu
/*
 * Fields of the BTH: the first three in byte 1, ACKREQ in bytes 8..11 and BECN in bytes 4..7 as
 * integers in host order.
 */
#define WIRE_BTH_SE 0x80
#define WIRE_BTH_MIGREQ 0x40
#define WIRE_BTH_PAD_SHIFT 4
#define WIRE_BTH_ACKREQ 0x80000000u
#define WIRE_BTH_BECN 0x40000000u /* in the word with the destination QPN */

/* Congestion bits.  FECN and BECN have the same positions as in BTH byte 4. */
enum wire_congestion {
	WIRE_CE = 0x01,	  /* ECN of the IP header is 11b: set by the caller, not by wire_parse() */
	WIRE_BECN = 0x40, /* packets in the other direction met congestion */
	WIRE_FECN = 0x80, /* this packet met congestion */
};

struct wire_packet {
	/* BTH */
	uint8_t opcode;
	bool solicited;	   /* SE */
	bool migrated;	   /* MigReq: 1 on transmit, ignored on receipt (rule S15) */
	uint8_t pad_count; /* 0 to 3 */
	uint8_t version;   /* TVer */
	uint16_t pkey;
	uint8_t congestion; /* set of enum wire_congestion */
	uint32_t dest_qpn;  /* 24 bits */
	bool ack_request;
	uint32_t psn; /* 24 bits */

	/*
	 * Extension headers.  Fields are 0 if wire_op_headers(opcode) does not contain the header.
	 */
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
	uint32_t immediate;	  /* ImmDt, the 32 bits as a host-order integer */
	uint32_t invalidate_rkey; /* IETH */
	uint32_t flush;		  /* FETH: placement type in bits 3..0, selectivity in bits 5..4 */

	/*
	 * UD: the 40 bytes that precede a received datagram in place of the GRH, with IPv4 headers
	 * in the last 20.  Set by the caller, which has the IP header; NULL after wire_parse().
	 */
	const uint8_t *network_header;

	/* In the buffer of the caller, without pad bytes and ICRC. */
	const uint8_t *payload;
	uint32_t payload_length;
};

/*
 * Fields of the FETH (IBA volume 1, annex A19).  Placement types, a set: earlier writes to the
 * memory must be visible to all, and must survive a loss of power.  Selectivity: the range of the
 * RETH, or all memory of its R_Key.
 */
enum wire_feth {
	WIRE_FLUSH_GLOBAL = 0x01,
	WIRE_FLUSH_PERSISTENT = 0x02,
	WIRE_FLUSH_TYPES = WIRE_FLUSH_GLOBAL | WIRE_FLUSH_PERSISTENT,
	WIRE_FLUSH_MR = 0x10,
	WIRE_FLUSH_DEFINED = WIRE_FLUSH_TYPES | WIRE_FLUSH_MR,
};

/*
 * Zeroes packet.  In two halves, because the compiler generates four stores for each, but a loop
 * for the whole.
 */
static inline void wire_packet_clear(struct wire_packet *packet)
{
	memset(packet, 0, sizeof(*packet) / 2);
	memset((uint8_t *)packet + sizeof(*packet) / 2, 0, sizeof(*packet) / 2);
}

enum wire_error {
	WIRE_OK,
	WIRE_TOO_SHORT,	  /* shorter than headers, pad and ICRC */
	WIRE_TOO_LONG,	  /* payload larger than the largest path MTU */
	WIRE_BAD_VERSION, /* TVer is not 0 */
	WIRE_BAD_OPCODE,  /* undefined for its service */
	/* Payload where none is allowed, or with the pad not a multiple of four. */
	WIRE_BAD_LENGTH,
};
const char *wire_error_name(enum wire_error error);

/*
 * Parses one UDP payload of length bytes including the ICRC, whose value it does not check (see
 * icrc.h).  On WIRE_OK all of packet is set, also its padding, and points into bytes.  Never reads
 * beyond length.
 *
 * The bytes may change during the call if the peer can write to that memory.  The fields
 * of packet may then be mixtures of old and new bytes, but the lengths are always consistent.
 */
enum wire_error wire_parse(const uint8_t *bytes, size_t length, struct wire_packet *packet);

/*
 * Writes BTH and the extension headers of packet->opcode to bytes, which must have room for
 * WIRE_MAX_HEADER_BYTES.  Returns their length.  The caller adds payload, pad and ICRC.
 */
unsigned int wire_build_headers(const struct wire_packet *packet, uint8_t *bytes);

/*
 * wire_build_headers() in two parts, for the data path.  wire_put_bth() writes the BTH: flags is a
 * set of WIRE_BTH_SE, WIRE_BTH_MIGREQ and the pad count at WIRE_BTH_PAD_SHIFT, psn may contain
 * WIRE_BTH_ACKREQ.  wire_build_extensions() writes the extension headers of opcode after the BTH
 * and returns their length.  It reads only the fields of packet that these headers have.
 */
static inline void wire_put_bth(uint8_t *at, uint8_t opcode, unsigned int flags, uint16_t pkey,
				uint32_t dest_qpn, uint32_t psn)
{
	wire_put_be32(at, (uint32_t)opcode << 24 | flags << 16 | pkey);
	wire_put_be32(at + 4, dest_qpn);
	wire_put_be32(at + 8, psn);
}
unsigned int wire_build_extensions(const struct wire_packet *packet, uint8_t opcode, uint8_t *at);

/* The IP header of a UDP datagram.  Addresses are GIDs. */
struct wire_ip {
	bool ipv6;
	const uint8_t *src, *dst;
	uint8_t traffic_class;
	uint8_t hop_limit;     /* 0: unknown; 64, the initial value of most senders, is written */
	uint16_t id;	       /* IPv4 only */
	size_t payload_length; /* number of bytes after the UDP header */
};
enum {
	WIRE_IPV4_BYTES = 20,
	WIRE_IPV6_BYTES = 40,
	WIRE_UDP_BYTES = 8,
	WIRE_PROTOCOL_UDP = 17,
};
/* Writes the header, of WIRE_IPV4_BYTES or WIRE_IPV6_BYTES.  The IPv6 flow label is 0. */
void wire_put_ip(const struct wire_ip *ip, uint8_t *to);

#endif
