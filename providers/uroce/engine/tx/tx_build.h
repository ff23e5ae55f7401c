/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Adds packets to a burst: headers, payload (copied, or by reference), pad and ICRC. */
#ifndef UROCE_ENGINE_TX_TX_BUILD_H
#define UROCE_ENGINE_TX_TX_BUILD_H

#include "pkt_hdr.h"

/* Source of a packet's payload. */
struct payload {
	enum {
		PAYLOAD_NONE,
		PAYLOAD_BYTES, /* length bytes at bytes */
		PAYLOAD_LIST,  /* length bytes of list, from offset on */
	} kind;
	uint32_t length; /* number of bytes without the pad */
	const uint8_t *bytes;
	const struct eng_sge *list;
	uint32_t count;
	uint32_t offset;
	bool stable; /* the bytes do not change before they are sent, so no copy is needed */
};

enum tx_build_result {
	TX_BUILD_OK,
	TX_BUILD_NO_ROOM, /* does not fit; the caller must begin another burst */
	TX_BUILD_ERROR,	  /* the memory of the payload cannot be used; the burst is unchanged */
};

/* Prepares a caller's burst for its first packet. */
void tx_build_begin(struct eng_burst *burst, const struct eng_path *path);

/* Number of bytes of a packet, ICRC included. */
static inline uint32_t tx_build_bytes(uint32_t header_bytes, uint32_t payload_length)
{
	return header_bytes + payload_length + message_pad(payload_length) +
	       (uint32_t)WIRE_ICRC_BYTES;
}

/* Returns true if a packet of this many bytes, ICRC included, fits into the burst. */
bool tx_build_fits(const struct eng_burst *burst, uint32_t packet_bytes);

/*
 * Returns the address for the headers of a packet with this payload, at most WIRE_MAX_HEADER_BYTES,
 * or NULL if the burst has no room.  tx_build_add() then adds the packet.
 */
uint8_t *tx_build_reserve(const struct eng_burst *burst, uint32_t payload_length);
enum tx_build_result tx_build_add(struct eng_qp *qp, struct eng_burst *burst, uint32_t header_bytes,
				  const struct payload *payload);
/* As tx_build_add(), without payload. */
enum tx_build_result tx_build_add_header_only(struct eng_burst *burst, uint32_t header_bytes);

#endif
