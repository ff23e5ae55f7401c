/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "grh.h"

#include <netinet/in.h>
#include <string.h>

#include "wire/bytes.h"

enum {
	IPV4_BYTES = 20,
	IPV4_VERSION_AND_LENGTH = 0x45,
	IPV4_DONT_FRAGMENT = 0x4000,
	IPV6_VERSION = 6,
	UDP_BYTES = 8,
	/* Used if the kernel does not report the hop limit: the initial value of most senders. */
	DEFAULT_HOP_LIMIT = 64,
};

/* RFC 1071, over a header whose checksum field is 0. */
static uint16_t ipv4_checksum(const uint8_t header[IPV4_BYTES])
{
	uint32_t sum = 0;

	for (int i = 0; i < IPV4_BYTES; i += 2)
		sum += wire_get_be16(header + i);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static uint8_t hop_limit_of(const struct link_batch *batch)
{
	return batch->hop_limit ? batch->hop_limit : DEFAULT_HOP_LIMIT;
}

static void put_ipv4(uint8_t *header, const struct wire_path *path, uint16_t ip_id, size_t length,
		     const struct link_batch *batch)
{
	header[0] = IPV4_VERSION_AND_LENGTH;
	header[1] = batch->traffic_class;
	wire_put_be16(header + 2, (uint16_t)(IPV4_BYTES + UDP_BYTES + length));
	wire_put_be16(header + 4, ip_id);
	wire_put_be16(header + 6, IPV4_DONT_FRAGMENT);
	header[8] = hop_limit_of(batch);
	header[9] = IPPROTO_UDP;
	wire_put_be16(header + 10, 0);
	memcpy(header + 12, path->src + 12, 4);
	memcpy(header + 16, path->dst + 12, 4);
	wire_put_be16(header + 10, ipv4_checksum(header));
}

static void put_ipv6(uint8_t *header, const struct wire_path *path, size_t length,
		     const struct link_batch *batch)
{
	/* The flow label is not known; 0 is allowed for any sender. */
	wire_put_be32(header, (uint32_t)IPV6_VERSION << 28 | (uint32_t)batch->traffic_class << 20);
	wire_put_be16(header + 4, (uint16_t)(UDP_BYTES + length));
	header[6] = IPPROTO_UDP;
	header[7] = hop_limit_of(batch);
	memcpy(header + 8, path->src, 16);
	memcpy(header + 24, path->dst, 16);
}

void grh_build(uint8_t header[ENG_GRH_BYTES], const struct wire_path *path, uint16_t ip_id,
	       size_t length, const struct link_batch *batch)
{
	if (path->ipv6) {
		put_ipv6(header, path, length, batch);
		return;
	}
	memset(header, 0, ENG_GRH_BYTES - IPV4_BYTES);
	put_ipv4(header + ENG_GRH_BYTES - IPV4_BYTES, path, ip_id, length, batch);
}
