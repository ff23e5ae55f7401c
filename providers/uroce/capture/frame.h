/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Ethernet, IP and UDP headers in front of a packet.  A process does not see Ethernet: the
 * addresses there are made up from the IP addresses (02:00 and four bytes), but for groups.
 */
#ifndef UROCE_CAPTURE_FRAME_H
#define UROCE_CAPTURE_FRAME_H

#include "capture.h"

enum {
	FRAME_ETHERNET_BYTES = 14,
	FRAME_UDP_BYTES = 8,
	FRAME_HEAD_MAX = FRAME_ETHERNET_BYTES + 40 + FRAME_UDP_BYTES,
};

/* Everything in front of UDP payload: bytes. */
static inline size_t frame_head_bytes(const struct capture_path *path)
{
	return FRAME_ETHERNET_BYTES + (path->ipv6 ? 40u : 20u) + FRAME_UDP_BYTES;
}

/* sum: of the UDP payload, by frame_sum(); only with IPv6, since IPv4 may do without. */
void frame_put_head(uint8_t *to, const struct capture_path *path, uint16_t identification,
		    size_t payload, uint32_t sum);

/*
 * Add bytes to a sum of the kind that RFC 1071 describes, folded to 16 bits; odd: an odd number of
 * bytes came before.
 */
uint32_t frame_sum(uint32_t sum, const uint8_t *bytes, size_t length, bool odd);

#endif
