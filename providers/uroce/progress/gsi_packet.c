/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "gsi_packet.h"

#include <assert.h>
#include <string.h>

/* Of the MAD's first four bytes. */
#define BASE_VERSION 1
#define CLASS_CM 7
#define CLASS_VERSION 2
#define METHOD_SEND 3

void gsi_packet_build(const struct wire_path *path, uint32_t psn, const uint8_t mad[GSI_MAD_BYTES],
		      uint8_t bytes[GSI_PACKET_BYTES])
{
	const struct wire_packet packet = {
		.opcode = WIRE_UD | WIRE_SEND_ONLY,
		.migrated = true, /* rule S15 */
		.pkey = WIRE_DEFAULT_PKEY,
		.dest_qpn = GSI_QPN,
		/* Means nothing to a UD receiver; the kernel says so as well. */
		.ack_request = true,
		.psn = psn & WIRE_24BIT_MASK,
		.qkey = GSI_QKEY,
		.src_qpn = GSI_QPN,
	};
	unsigned int headers = wire_build_headers(&packet, bytes);

	assert(headers + GSI_MAD_BYTES + WIRE_ICRC_BYTES == GSI_PACKET_BYTES);
	memcpy(bytes + headers, mad, GSI_MAD_BYTES);
	wire_icrc_put(path, 0, bytes, GSI_PACKET_BYTES);
}

enum gsi_fault gsi_packet_check(const struct wire_packet *packet)
{
	static const uint8_t begin[] = { BASE_VERSION, CLASS_CM, CLASS_VERSION, METHOD_SEND };

	if (packet->opcode != (WIRE_UD | WIRE_SEND_ONLY) || packet->payload_length != GSI_MAD_BYTES)
		return GSI_NO_MAD;
	if (packet->qkey != GSI_QKEY)
		return GSI_WRONG_QKEY;
	return memcmp(packet->payload, begin, sizeof(begin)) ? GSI_NO_MAD : GSI_OK;
}
