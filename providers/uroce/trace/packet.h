/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Record of each RoCEv2 packet of a capture: 48 bytes with all that the analysis needs, so that
 * captures of some million packets fit into memory.
 */
#ifndef UROCE_TRACE_PACKET_H
#define UROCE_TRACE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Direction of a packet relative to the capturing host; many files do not contain it. */
enum trace_way {
	TRACE_WAY_UNKNOWN,
	TRACE_WAY_IN,
	TRACE_WAY_OUT,
};

enum trace_flag {
	TRACE_ACK_REQUEST = 0x01,
	TRACE_SOLICITED = 0x02,
	TRACE_MIGRATED = 0x04,	 /* MigReq is 1 */
	TRACE_OTHER_PKEY = 0x08, /* P_Key is not the default one */
	TRACE_WRONG_ICRC = 0x10, /* the ICRC was checked and is wrong */
	/* dropped by the receiving process or not sent, according to a comment */
	TRACE_REFUSED = 0x20,
	TRACE_DUPLICATE = 0x40,	  /* duplicate record of another packet of the file */
	TRACE_COUNTED_ID = 0x80,  /* the IPv4 ID is from a counter, so not repeated soon */
	TRACE_CONGESTION = 0x100, /* FECN or BECN is set */
};
/* Packets with one of these flags are not analysed. */
#define TRACE_IGNORED (TRACE_WRONG_ICRC | TRACE_REFUSED | TRACE_DUPLICATE)

struct trace_packet {
	uint64_t time_ns; /* ns since 1970 */
	/* of addresses, source port, IPv4 ID, headers and ICRC; equal for duplicates */
	uint64_t hash;
	uint32_t frame; /* frame number in the file, from 1 */
	uint32_t flow;	/* index in struct flows, or FLOW_NONE */
	uint32_t psn;
	uint32_t msn;	     /* AETH */
	uint32_t dma_length; /* RETH */
	uint16_t payload;    /* bytes */
	uint16_t part;	     /* index in a burst captured as one frame */
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
