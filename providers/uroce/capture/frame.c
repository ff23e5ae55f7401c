/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "frame.h"

#include <string.h>

#include "wire/bytes.h"
#include "wire/packet.h"

enum {
	ETHERTYPE_IPV4 = 0x0800,
	ETHERTYPE_IPV6 = 0x86dd,
};

static uint32_t fold_checksum(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint32_t)sum;
}

static inline uint64_t sum_words(const uint8_t *bytes, size_t count)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += wire_get_be32(bytes + 4 * i);
	return sum;
}

uint32_t frame_add_checksum(uint32_t sum, const uint8_t *bytes, size_t length, bool odd)
{
	uint64_t more = sum_words(bytes, length / 4);

	for (size_t i = length / 4 * 4; i < length; i++)
		more += (uint64_t)bytes[i] << (8 * (~i & 1));
	more = fold_checksum(more);
	if (odd)
		more = (more >> 8) | (more & 0xff) << 8;
	return fold_checksum(sum + more);
}

static void put_ethernet_address(uint8_t *to, const struct capture_path *path,
				 const uint8_t gid[16])
{
	static const uint8_t ipv4_group[3] = { 0x01, 0x00, 0x5e };

	to[0] = 0x02; /* locally administered */
	to[1] = 0;
	memcpy(to + 2, gid + 12, 4);
	if (path->ipv6 && gid[0] == 0xff) {
		to[0] = 0x33;
		to[1] = 0x33;
	} else if (!path->ipv6 && gid[12] >> 4 == 0xe) {
		memcpy(to, ipv4_group, sizeof(ipv4_group));
		to[3] = gid[13] & 0x7f;
	}
}

void frame_put_headers(uint8_t *to, const struct capture_path *path, uint16_t identification,
		       size_t payload, uint32_t sum)
{
	const struct wire_ip header = {
		.ipv6 = path->ipv6,
		.src = path->src,
		.dst = path->dst,
		.traffic_class = path->traffic_class,
		.hop_limit = path->hop_limit,
		.id = identification,
		.payload_length = payload,
	};
	uint8_t *ip = to + FRAME_ETHERNET_BYTES;
	uint8_t *udp = ip + (path->ipv6 ? WIRE_IPV6_BYTES : WIRE_IPV4_BYTES);
	uint16_t length = (uint16_t)(WIRE_UDP_BYTES + payload), checksum = 0;

	put_ethernet_address(to, path, path->dst);
	put_ethernet_address(to + 6, path, path->src);
	wire_put_be16(to + 12, path->ipv6 ? ETHERTYPE_IPV6 : ETHERTYPE_IPV4);
	wire_put_ip(&header, ip);
	wire_put_be16(udp, path->src_port);
	wire_put_be16(udp + 2, WIRE_UDP_PORT);
	wire_put_be16(udp + 4, length);
	wire_put_be16(udp + 6, 0);
	if (path->ipv6) {
		sum = frame_add_checksum(sum, ip + 8, 32, false);
		sum = frame_add_checksum(sum, udp, WIRE_UDP_BYTES, false);
		checksum = (uint16_t)~fold_checksum(sum + length + WIRE_PROTOCOL_UDP);
		/* A checksum of 0 would mean none. */
		wire_put_be16(udp + 6, checksum ? checksum : 0xffff);
	}
}
