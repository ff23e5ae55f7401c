/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The 40 bytes in front of a received datagram: its IPv6 header, or in the last 20 of them its IPv4
 * header.  A UDP socket does not hand out headers, so they are built anew from what is known.
 */
#ifndef UROCE_PROGRESS_NETWORK_HEADER_H
#define UROCE_PROGRESS_NETWORK_HEADER_H

#include "engine/engine.h"
#include "link/link.h"

/* A datagram of length bytes (UDP payload) that came by path; ip_id is its IPv4 identification. */
void network_header(uint8_t header[ENG_GRH_BYTES], const struct wire_path *path, uint16_t ip_id,
		    size_t length, const struct link_batch *batch);

#endif
