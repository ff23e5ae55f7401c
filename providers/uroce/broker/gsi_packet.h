/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A MAD as one UD packet of queue pair 1, and what a received one must be.  Pure.
 */
#ifndef UROCE_BROKER_GSI_PACKET_H
#define UROCE_BROKER_GSI_PACKET_H

#include "wire/mad_header.h"
#include "wire/icrc.h"
#include "wire/packet.h"

/* BTH, DETH, the MAD, ICRC. */
#define GSI_PACKET_BYTES 280

/* The packet for a datagram whose IPv4 identification is 0. */
void gsi_packet_build(const struct wire_path *path, uint32_t psn, const uint8_t mad[MAD_BYTES],
		      uint8_t packet[GSI_PACKET_BYTES]);

enum gsi_fault {
	GSI_OK,
	GSI_NO_MAD,	/* not a UD SEND_ONLY of 256 bytes, or not of the connection manager */
	GSI_WRONG_QKEY, /* not that of queue pair 1 */
};
/* P_Key and ICRC are looked at elsewhere, as those of all packets. */
enum gsi_fault gsi_packet_check(const struct wire_packet *packet);

#endif
