/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "gsi_packet.h"

#include <assert.h>
#include <string.h>

void gsi_packet_build(const struct wire_path *path, uint32_t psn, const uint8_t mad[MAD_BYTES],
		      uint8_t bytes[GSI_PACKET_BYTES])
{
	const struct wire_packet packet = {
		.opcode = WIRE_UD | WIRE_SEND_ONLY,
		.migrated = true, /* rule S15 */
		.pkey = WIRE_DEFAULT_PKEY,
		.dest_qpn = MAD_QPN,
		/* Ignored by UD receivers; set because Linux sets it. */
		.ack_request = true,
		.psn = psn & WIRE_24BIT_MASK,
		.qkey = MAD_QKEY,
		.src_qpn = MAD_QPN,
	};
	unsigned int headers = wire_build_headers(&packet, bytes);

	assert(headers + MAD_BYTES + WIRE_ICRC_BYTES == GSI_PACKET_BYTES);
	memcpy(bytes + headers, mad, MAD_BYTES);
	wire_icrc_put(path, 0, bytes, GSI_PACKET_BYTES);
}

enum gsi_packet_error gsi_packet_check(const struct wire_packet *packet)
{
	static const uint8_t begin[] = { MAD_BASE_VERSION, MAD_CLASS_CM, MAD_CLASS_VERSION,
					 MAD_METHOD_SEND };

	if (packet->opcode != (WIRE_UD | WIRE_SEND_ONLY) || packet->payload_length != MAD_BYTES)
		return GSI_NO_MAD;
	if (packet->qkey != MAD_QKEY)
		return GSI_WRONG_QKEY;
	return memcmp(packet->payload, begin, sizeof(begin)) ? GSI_NO_MAD : GSI_OK;
}
