/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "ip_header.h"

#include <assert.h>
#include <string.h>

#include "util/gid.h"
#include "wire/bytes.h"

enum header_at {
	AT_VERSION = 0,
	AT_FAMILY = 1, /* upper four bits */
	AT_SOURCE_PORT = 2,
	AT_SOURCE = 4,
	AT_DESTINATION = 20,
};

static void get_address(const uint8_t *from, uint8_t family, uint8_t *gid)
{
	memcpy(gid, from, 16);
	if (family == 4)
		memcpy(gid, gid_ipv4_prefix, sizeof(gid_ipv4_prefix));
}

static void put_address(const uint8_t *gid, uint8_t family, uint8_t *to)
{
	memcpy(to, gid, 16);
	if (family == 4)
		memset(to, 0, sizeof(gid_ipv4_prefix));
}

bool cm_ip_header_get(const uint8_t *bytes, struct cm_ip_header *header)
{
	header->version = bytes[AT_VERSION];
	header->family = bytes[AT_FAMILY] >> 4;
	header->source_port = wire_get_be16(bytes + AT_SOURCE_PORT);
	get_address(bytes + AT_SOURCE, header->family, header->source);
	get_address(bytes + AT_DESTINATION, header->family, header->destination);
	return header->version == 0 && (header->family == 4 || header->family == 6);
}

void cm_ip_header_put(const struct cm_ip_header *header, uint8_t *bytes)
{
	assert(header->family < 16);
	bytes[AT_VERSION] = header->version;
	bytes[AT_FAMILY] = (uint8_t)(header->family << 4);
	wire_put_be16(bytes + AT_SOURCE_PORT, header->source_port);
	put_address(header->source, header->family, bytes + AT_SOURCE);
	put_address(header->destination, header->family, bytes + AT_DESTINATION);
}

const char *cm_port_space_name(uint32_t space)
{
	static const struct {
		enum cm_port_space space;
		const char *name;
	} names[] = {
		{ CM_PS_IPOIB, "IPoIB" },
		{ CM_PS_TCP, "TCP" },
		{ CM_PS_UDP, "UDP" },
		{ CM_PS_IB, "IB" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].space == space)
			return names[i].name;
	return "?";
}
