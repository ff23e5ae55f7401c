/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A burst: packets of one QP to one destination that leave in one system call.  All have segment
 * bytes, the last one perhaps fewer (the rule of UDP_SEGMENT).  Packets are complete: headers,
 * payload, pad, ICRC, the latter computed with IPv4 identifications that count up from the first
 * one's, as the kernel numbers the segments of one call.
 *
 * The bytes stand in pieces: those in the caller's staging buffer, and, when gather is allowed,
 * payload where it lies in registered memory.  Pieces in order make the packets back to back.
 */
#ifndef UROCE_ENGINE_BASE_BURST_H
#define UROCE_ENGINE_BASE_BURST_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/icrc.h"

/* A destination: what the ICRC needs, and a handle that only the owner of the QP understands. */
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
	ENG_BURST_ACK_PROBE,  /* a request of the past that solicits an ACK */
	ENG_BURST_RETRANSMIT, /* requests that are missing at the peer */
	ENG_BURST_READ_RETRY, /* requests for missing READ responses */
	ENG_BURST_ACK,
	ENG_BURST_NAK,
	ENG_BURST_UNSOLICITED_ACK,  /* an unsolicited ACK */
	ENG_BURST_READ_ATOMIC_RESP, /* READ or Atomic responses */
	ENG_BURST_CNP, /* a congestion notification: its path is that of eng_set_ecn() */
};

struct eng_burst {
	/* Set by the caller, kept by the engine. */
	uint8_t *staging;
	uint32_t staging_bytes;
	struct eng_piece *pieces;
	uint32_t max_pieces;
	uint32_t max_packets;	 /* at most 128 */
	uint32_t max_bytes;	 /* of all packets together, at most 65507 */
	uint16_t identification; /* of the first packet, if that is IPv4 */
	uint32_t gather_from;	 /* payload of at least this many bytes is not copied; UINT32_MAX:
				    never */

	/* Filled by eng_transmit(). */
	const struct eng_path *path;
	uint32_t packets;
	uint32_t segment; /* bytes of each packet but the last */
	uint32_t bytes;	  /* of all packets together */
	uint32_t piece_count;
	uint32_t staged; /* bytes of staging in use */
	bool closed;	 /* a shorter packet stands at the end: nothing may follow */
	enum eng_burst_kind kind;
	bool has_ack; /* behind requests: the last packet */
	bool last;    /* nothing is left for a further burst */
	uint32_t first_psn;
};

#endif
