/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Builds the UD packet of queue pair 1 that carries a MAD, and checks received ones.  Pure. */
#ifndef UROCE_BROKER_GSI_PACKET_H
#define UROCE_BROKER_GSI_PACKET_H

#include "wire/mad_header.h"
#include "wire/icrc.h"
#include "wire/packet.h"

/* BTH, DETH, MAD and ICRC */
#define GSI_PACKET_BYTES 280

/* Builds the packet of a MAD.  The ICRC is that of a datagram with IPv4 ID 0. */
void gsi_packet_build(const struct wire_path *path, uint32_t psn, const uint8_t mad[MAD_BYTES],
		      uint8_t packet[GSI_PACKET_BYTES]);

enum gsi_packet_error {
	GSI_OK,
	GSI_NO_MAD,	/* no UD SEND_ONLY with 256 bytes, or no MAD of the connection manager */
	GSI_WRONG_QKEY, /* Q_Key other than that of queue pair 1 */
};
/* Checks a received packet.  The caller checks P_Key and ICRC, as for all packets. */
enum gsi_packet_error gsi_packet_check(const struct wire_packet *packet);

#endif
