/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A scripted peer on this host: packets made by hand, sent by a plain UDP socket to 127.0.0.1.  The
 * receiver does not see the IPv4 identification, so only the ICRC shows it, and any identification
 * can be simulated.
 */
#ifndef UROCE_TESTS_DEMUX_PEER_H
#define UROCE_TESTS_DEMUX_PEER_H

#include <stddef.h>
#include <stdint.h>

#include "wire/icrc.h"

#define DEMUX_PACKET_BYTES 32 /* SEND_ONLY with 16 bytes */

struct demux_peer {
	int sock;
	struct wire_path path; /* from here to 127.0.0.1 */
};

/* Opens a socket that is bound to a local IPv4 address; fails the test on error. */
void demux_peer_open(struct demux_peer *peer, const char *address);
void demux_peer_close(struct demux_peer *peer);
/*
 * Builds a SEND_ONLY packet of the service (WIRE_RC, WIRE_UC), with the ICRC for this IPv4
 * identification.
 */
void demux_peer_make(const struct demux_peer *peer, uint8_t bytes[DEMUX_PACKET_BYTES],
		     uint8_t service, uint32_t qpn, uint32_t psn, uint16_t identification);
/*
 * Sends the bytes as one datagram (segment 0) or, in one call, as datagrams of segment bytes each.
 */
void demux_peer_send(const struct demux_peer *peer, const uint8_t *bytes, size_t length,
		     uint16_t segment);

#endif
