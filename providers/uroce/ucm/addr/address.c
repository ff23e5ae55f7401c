/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "address.h"

#include <endian.h>
#include <netinet/in.h>
#include <string.h>

#include <infiniband/ib.h>

_Static_assert(AF_IB == UCM_AF_IB, "the family's number");

static const struct {
	int family;
	size_t bytes;
} families[] = {
	{ AF_INET, sizeof(struct sockaddr_in) },
	{ AF_INET6, sizeof(struct sockaddr_in6) },
	{ UCM_AF_IB, sizeof(struct sockaddr_ib) },
};

size_t ucm_address_bytes(int family)
{
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		if (families[i].family == family)
			return families[i].bytes;
	}
	return 0;
}

static void get_ipv4(const void *from, struct ucm_address *address)
{
	struct sockaddr_in sin;

	memcpy(&sin, from, sizeof(sin));
	gid_from_ipv4(address->ip, &sin.sin_addr);
	address->port = be16toh(sin.sin_port);
}

static void get_ipv6(const void *from, struct ucm_address *address)
{
	struct sockaddr_in6 sin6;

	memcpy(&sin6, from, sizeof(sin6));
	memcpy(address->ip, &sin6.sin6_addr, 16);
	address->port = be16toh(sin6.sin6_port);
	address->scope_id = sin6.sin6_scope_id;
	address->flow_info = be32toh(sin6.sin6_flowinfo) & 0xfffff;
}

static void get_ib(const void *from, struct ucm_address *address)
{
	struct sockaddr_ib sib;
	uint64_t service;

	memcpy(&sib, from, sizeof(sib));
	service = be64toh(sib.sib_sid) & be64toh(sib.sib_sid_mask);
	memcpy(address->ip, &sib.sib_addr, 16);
	address->port = (uint16_t)service;
	address->port_space = (uint16_t)(service >> 16);
	address->scope_id = (uint32_t)sib.sib_scope_id;
	address->flow_info = be32toh(sib.sib_flowinfo) & 0xfffff;
}

bool ucm_address_get(const void *from, size_t bytes, struct ucm_address *address)
{
	sa_family_t family;

	memset(address, 0, sizeof(*address));
	if (bytes < sizeof(family))
		return false;
	memcpy(&family, from, sizeof(family));
	if (!ucm_address_bytes(family) || bytes < ucm_address_bytes(family))
		return false;
	address->family = family;
	if (family == AF_INET)
		get_ipv4(from, address);
	else if (family == AF_INET6)
		get_ipv6(from, address);
	else
		get_ib(from, address);
	return true;
}

size_t ucm_address_put(const struct ucm_address *address, void *to, size_t room)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6 };
	struct sockaddr_ib sib = { .sib_family = UCM_AF_IB, .sib_pkey = htobe16(0xffff) };
	size_t bytes = ucm_address_bytes(address->family);

	if (bytes > room)
		bytes = room;
	switch (address->family) {
	case AF_INET:
		sin.sin_port = htobe16(address->port);
		memcpy(&sin.sin_addr, address->ip + 12, 4);
		memcpy(to, &sin, bytes);
		break;
	case AF_INET6:
		sin6.sin6_port = htobe16(address->port);
		memcpy(&sin6.sin6_addr, address->ip, 16);
		sin6.sin6_scope_id = address->scope_id;
		sin6.sin6_flowinfo = htobe32(address->flow_info);
		memcpy(to, &sin6, bytes);
		break;
	case UCM_AF_IB:
		memcpy(&sib.sib_addr, address->ip, 16);
		sib.sib_sid = htobe64((uint64_t)address->port_space << 16 | address->port);
		sib.sib_sid_mask = htobe64(address->port ? UINT64_MAX : ~UINT64_C(0xffff));
		sib.sib_flowinfo = htobe32(address->flow_info);
		memcpy(to, &sib, bytes);
		break;
	}
	return bytes;
}

void ucm_address_any(int family, struct ucm_address *address)
{
	memset(address, 0, sizeof(*address));
	address->family = family;
	if (family == AF_INET)
		memcpy(address->ip, gid_ipv4_prefix, sizeof(gid_ipv4_prefix));
}
