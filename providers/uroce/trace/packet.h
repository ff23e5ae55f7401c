/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What is kept of each RoCEv2 packet of a capture: all that the derivations need, in 64 bytes, so
 * that a capture of some million packets fits into memory.
 */
#ifndef UROCE_TRACE_PACKET_H
#define UROCE_TRACE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which way a packet went, seen from the host that captured it; many files do not say. */
enum trace_way {
	TRACE_WAY_UNKNOWN,
	TRACE_WAY_IN,
	TRACE_WAY_OUT,
};

enum trace_flag {
	TRACE_ACK_REQUEST = 0x01,
	TRACE_SOLICITED = 0x02,
	TRACE_MIGRATED = 0x04,	  /* MigReq is 1 */
	TRACE_OTHER_PKEY = 0x08,  /* not the default one */
	TRACE_WRONG_ICRC = 0x10,  /* it was captured whole, and its ICRC is wrong */
	TRACE_REFUSED = 0x20,	  /* the file says that its process dropped it */
	TRACE_COPY = 0x40,	  /* another packet of the file is the same one, seen elsewhere */
	TRACE_COUNTED_ID = 0x80,  /* its IPv4 identification is from a counter: no other has it */
	TRACE_CONGESTION = 0x100, /* FECN or BECN is set */
};
/* Packets with one of these tell nothing of their queue pair. */
#define TRACE_IGNORED (TRACE_WRONG_ICRC | TRACE_REFUSED | TRACE_COPY)

struct trace_packet {
	uint64_t time_ns; /* since 1970 */
	uint64_t hash;	  /* of addresses, identification and contents: equal for copies */
	uint32_t frame;	  /* number in the file, from 1 */
	uint32_t flow;	  /* index in struct flows */
	uint32_t psn;
	uint32_t msn;	     /* AETH */
	uint32_t dma_length; /* RETH */
	uint16_t payload;    /* bytes */
	uint16_t part;	     /* in a burst that was captured as one frame: from 0 */
	uint16_t flags;	     /* set of enum trace_flag */
	uint8_t opcode;
	uint8_t syndrome; /* AETH */
	uint8_t way;	  /* enum trace_way */
};

struct trace_packets {
	struct trace_packet *items;
	size_t count, room;
};

#endif
