/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Invariant CRC of RoCEv2 (IBA volume 1, annex A17): CRC-32 as in Ethernet, computed by ISA-L, over
 * eight bytes 0xFF and the packet from the IP header on, with the fields that routers change set to
 * ones: IPv4 TOS, TTL, header checksum; IPv6 traffic class, flow label, hop limit; UDP checksum;
 * BTH byte 4.  It is stored least significant byte first.
 *
 * The ICRC covers the IPv4 ID.  Packets of this process have IPv4 ID 0; or 0, 1, 2 ... in a
 * UDP_SEGMENT burst; or, with a connected socket, continue from the first value of the kernel
 * (Documentation/decisions/icrc.md).  Other senders use a counter, which a UDP socket does not
 * report, so wire_icrc_check() solves for it.
 */
#ifndef UROCE_WIRE_ICRC_H
#define UROCE_WIRE_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Path of a packet: everything that the ICRC covers outside the UDP payload. */
struct wire_path {
	uint8_t src[16]; /* as in a GID: IPv4 addresses are ::ffff:a.b.c.d */
	uint8_t dst[16];
	uint16_t src_port;   /* host order; the destination port is always 4791 */
	bool ipv6;	     /* false: both addresses are IPv4-mapped */
	uint32_t icrc_state; /* set by wire_icrc_precompute(), otherwise 0 */
};

/*
 * Computes the part of the ICRC that depends on the path only.  Call if the path is used for many
 * packets and does not change any more; the ICRC of short packets then takes half the time.
 */
void wire_icrc_precompute(struct wire_path *path);

/*
 * Starts an ICRC: over the headers outside the packet and the first header_length bytes of the
 * packet, which must hold at least the BTH.  udp_payload_length counts BTH to ICRC; ip_id is
 * ignored for IPv6.  Continue with wire_icrc_continue() and end with wire_icrc_finish().
 */
uint32_t wire_icrc_begin(const struct wire_path *path, uint16_t ip_id, uint32_t udp_payload_length,
			 const uint8_t *header, size_t header_length);
uint32_t wire_icrc_continue(uint32_t state, const uint8_t *bytes, size_t length);
/* Stores the four bytes of the finished ICRC at out. */
void wire_icrc_finish(uint32_t state, uint8_t *out);

/* Computes the ICRC of a contiguous packet of length bytes and stores it in the last four. */
void wire_icrc_put(const struct wire_path *path, uint16_t ip_id, uint8_t *packet, size_t length);

enum wire_icrc_verdict {
	WIRE_ICRC_OK,	  /* with the expected IPv4 ID, or IPv6 */
	WIRE_ICRC_SOLVED, /* with another IPv4 ID, now in *ip_id */
	WIRE_ICRC_BAD,
};

/*
 * ICRC check of a received packet of length bytes (ICRC included).  *ip_id is the expected IPv4 ID.
 * If the ICRC is right for another IPv4 ID, stores that there.
 */
enum wire_icrc_verdict wire_icrc_check(const struct wire_path *path, uint16_t *ip_id,
				       const uint8_t *packet, size_t length);

#endif
