/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Burst: packets of one QP to one destination that are sent in one system call.  All have segment
 * bytes, except that the last one may have fewer (the rule of UDP_SEGMENT).  Packets are complete:
 * headers, payload, pad, ICRC.  The ICRCs are computed with IPv4 IDs that count up from that of the
 * first packet, as the kernel numbers the segments of one call.
 *
 * The bytes are in pieces: those in the caller's staging buffer, and, if gather is allowed, payload
 * where it lies in registered memory.  The pieces in order are the packets back to back.
 */
#ifndef UROCE_ENGINE_BASE_BURST_H
#define UROCE_ENGINE_BASE_BURST_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/icrc.h"

/*
 * Destination: the fields that the ICRC covers, and a handle that belongs to the owner of the QP.
 */
struct eng_path {
	struct wire_path wire;
	void *link;
};

struct eng_piece {
	const uint8_t *bytes;
	uint32_t length;
};

/* Contents of a burst; eng_tx_rollback() needs it to undo the right state. */
enum eng_burst_kind {
	ENG_BURST_REQUESTS,
	ENG_BURST_ACK_PROBE,  /* a past request that requests an ACK */
	ENG_BURST_RETRANSMIT, /* requests that the peer is missing */
	ENG_BURST_READ_RETRY, /* requests for missing READ responses */
	ENG_BURST_ACK,
	ENG_BURST_NAK,
	ENG_BURST_UNSOLICITED_ACK,  /* an unsolicited ACK */
	ENG_BURST_READ_ATOMIC_RESP, /* READ or Atomic responses */
	ENG_BURST_CNP,		    /* a congestion notification, on the path of eng_set_ecn() */
};

struct eng_burst {
	/* Set by the caller, kept by the engine. */
	uint8_t *staging;
	uint32_t staging_bytes;
	struct eng_piece *pieces;
	uint32_t max_pieces;
	uint32_t max_packets;	 /* at most 128 */
	uint32_t max_bytes;	 /* for all packets together, at most 65507 */
	uint16_t identification; /* IPv4 ID of the first packet */
	uint32_t gather_from;	 /* payload of at least this many bytes is not copied; UINT32_MAX:
				    never */

	/* Filled by eng_transmit(). */
	const struct eng_path *path;
	uint32_t packets;
	uint32_t segment; /* number of bytes of each packet but the last */
	uint32_t bytes;	  /* number of bytes of all packets together */
	uint32_t piece_count;
	uint32_t staged; /* number of bytes of staging in use */
	bool closed;	 /* a shorter packet is at the end: no packet may follow */
	enum eng_burst_kind kind;
	bool has_ack; /* the last packet, after requests, is an ACK */
	bool last;    /* no further burst would have packets */
	uint32_t first_psn;
};

#endif
