/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "frame.h"

#include <netinet/in.h>
#include <string.h>

#include "wire/bytes.h"
#include "wire/packet.h"

enum {
	ETHERTYPE_IPV4 = 0x0800,
	ETHERTYPE_IPV6 = 0x86dd,
	IPV4_BYTES = 20,
	IPV4_VERSION_AND_LENGTH = 0x45,
	IPV4_DONT_FRAGMENT = 0x4000,
	IPV6_VERSION = 6,
	/* Used if the hop limit is unknown: the default of a host on the same network. */
	DEFAULT_HOP_LIMIT = 64,
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

static void put_ipv4(uint8_t *to, const struct capture_path *path, uint16_t identification,
		     size_t payload)
{
	to[0] = IPV4_VERSION_AND_LENGTH;
	to[1] = path->traffic_class;
	wire_put_be16(to + 2, (uint16_t)(IPV4_BYTES + FRAME_UDP_BYTES + payload));
	wire_put_be16(to + 4, identification);
	wire_put_be16(to + 6, IPV4_DONT_FRAGMENT);
	to[8] = path->hop_limit ? path->hop_limit : DEFAULT_HOP_LIMIT;
	to[9] = IPPROTO_UDP;
	wire_put_be16(to + 10, 0);
	memcpy(to + 12, path->src + 12, 4);
	memcpy(to + 16, path->dst + 12, 4);
	wire_put_be16(to + 10, (uint16_t)~fold_checksum(sum_words(to, IPV4_BYTES / 4)));
}

static void put_ipv6(uint8_t *to, const struct capture_path *path, size_t payload)
{
	wire_put_be32(to, (uint32_t)IPV6_VERSION << 28 | (uint32_t)path->traffic_class << 20);
	wire_put_be16(to + 4, (uint16_t)(FRAME_UDP_BYTES + payload));
	to[6] = IPPROTO_UDP;
	to[7] = path->hop_limit ? path->hop_limit : DEFAULT_HOP_LIMIT;
	memcpy(to + 8, path->src, 16);
	memcpy(to + 24, path->dst, 16);
}

void frame_put_headers(uint8_t *to, const struct capture_path *path, uint16_t identification,
		       size_t payload, uint32_t sum)
{
	uint8_t *ip = to + FRAME_ETHERNET_BYTES, *udp = ip + (path->ipv6 ? 40 : IPV4_BYTES);
	uint16_t length = (uint16_t)(FRAME_UDP_BYTES + payload), checksum = 0;

	put_ethernet_address(to, path, path->dst);
	put_ethernet_address(to + 6, path, path->src);
	wire_put_be16(to + 12, path->ipv6 ? ETHERTYPE_IPV6 : ETHERTYPE_IPV4);
	wire_put_be16(udp, path->src_port);
	wire_put_be16(udp + 2, WIRE_UDP_PORT);
	wire_put_be16(udp + 4, length);
	wire_put_be16(udp + 6, 0);
	if (path->ipv6) {
		put_ipv6(ip, path, payload);
		sum = frame_add_checksum(sum, ip + 8, 32, false);
		sum = frame_add_checksum(sum, udp, FRAME_UDP_BYTES, false);
		checksum = (uint16_t)~fold_checksum(sum + length + IPPROTO_UDP);
		/* A checksum of 0 would mean none. */
		wire_put_be16(udp + 6, checksum ? checksum : 0xffff);
	} else {
		put_ipv4(ip, path, identification, payload);
	}
}
