/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The 40 bytes in front of a received datagram (GRH): its IPv6 header, or in the last 20 bytes its
 * IPv4 header.  A UDP socket does not deliver headers, so they are rebuilt.
 */
#ifndef UROCE_PROGRESS_RX_GRH_H
#define UROCE_PROGRESS_RX_GRH_H

#include "engine/engine.h"
#include "link/link.h"

/*
 * Builds the header of a datagram of length bytes (UDP payload) received by path with IPv4 ID
 * ip_id.
 */
void grh_build(uint8_t header[ENG_GRH_BYTES], const struct wire_path *path, uint16_t ip_id,
	       size_t length, const struct link_batch *batch);

#endif
