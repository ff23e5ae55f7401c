/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Builds Ethernet, IP and UDP headers for a captured packet.  A process does not see MAC addresses,
 * so they are derived from the IP addresses: 02:00 and its last four bytes, or the multicast MAC
 * address.
 */
#ifndef UROCE_CAPTURE_FRAME_H
#define UROCE_CAPTURE_FRAME_H

#include "capture.h"
#include "wire/packet.h"

enum { FRAME_ETHERNET_BYTES = 14 };

/* Returns the number of bytes in front of the UDP payload. */
static inline size_t frame_headers_bytes(const struct capture_path *path)
{
	return FRAME_ETHERNET_BYTES + WIRE_UDP_BYTES +
	       (path->ipv6 ? WIRE_IPV6_BYTES : WIRE_IPV4_BYTES);
}

/*
 * Writes the headers.  sum is the frame_add_checksum() of the UDP payload, and used with IPv6 only:
 * over IPv4 the UDP checksum is optional and set to 0.
 */
void frame_put_headers(uint8_t *to, const struct capture_path *path, uint16_t identification,
		       size_t payload, uint32_t sum);

/*
 * Adds bytes to a checksum as of RFC 1071, folded to 16 bits; odd is true if an odd number of bytes
 * has been added before.
 */
uint32_t frame_add_checksum(uint32_t sum, const uint8_t *bytes, size_t length, bool odd);

#endif
