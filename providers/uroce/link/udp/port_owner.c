/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "link/link_priv.h"

/* The kernel prints an address as words of native byte order: one for IPv4, four for IPv6. */
static bool parse_address(const char *hex, uint8_t gid[16])
{
	struct link_endpoint any = { .gid = { 0 } };
	uint32_t words[4];
	size_t i;

	if (strlen(hex) == 8) {
		union link_sockaddr v4 = { .in = { .sin_family = AF_INET } };
		uint16_t port;

		if (sscanf(hex, "%8x", &words[0]) != 1)
			return false;
		v4.in.sin_addr.s_addr = words[0];
		link_sockaddr_to_gid(&v4, any.gid, &port);
	} else {
		if (strlen(hex) != 32)
			return false;
		for (i = 0; i < 4; i++)
			if (sscanf(hex + 8 * i, "%8x", &words[i]) != 1)
				return false;
		memcpy(any.gid, words, sizeof(words));
	}
	memcpy(gid, any.gid, 16);
	return true;
}

/*
 * Returns true if a socket bound to gid blocks the port of the endpoint.  A wildcard socket does;
 * one on :: blocks IPv4 as well.
 */
static bool blocks_port(const struct link_endpoint *endpoint, const uint8_t gid[16])
{
	if (memcmp(endpoint->gid, gid, 16) == 0)
		return true;
	if (!gid_is_any(gid))
		return false;
	return !gid_is_ipv4(gid) || gid_is_ipv4(endpoint->gid);
}

static bool search_table(const char *path, const struct link_endpoint *endpoint, uint16_t port,
			 uint32_t *uid)
{
	char line[512], local[64];
	unsigned int local_port, owner;
	bool found = false;
	uint8_t gid[16];
	FILE *table = fopen(path, "re");

	if (!table)
		return false;
	while (!found && fgets(line, sizeof(line), table)) {
		/* sl: local:port remote:port state tx:rx timer:when retransmits uid ... */
		if (sscanf(line, " %*[^:]: %63[^:]:%x %*s %*s %*s %*s %*s %u", local, &local_port,
			   &owner) != 3)
			continue;
		if (local_port != port || !parse_address(local, gid))
			continue;
		if (blocks_port(endpoint, gid)) {
			*uid = owner;
			found = true;
		}
	}
	fclose(table);
	return found;
}

bool link_udp_port_owner(const struct link_endpoint *endpoint, uint16_t port, uint32_t *uid)
{
	return search_table("/proc/self/net/udp", endpoint, port, uid) ||
	       search_table("/proc/self/net/udp6", endpoint, port, uid);
}
