/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "link/link_priv.h"
#include <rdma/uroce-abi.h>

struct link_endpoint link_endpoint_from_gid(const uint8_t gid[16], uint32_t scope_id)
{
	struct link_endpoint endpoint = { .scope_id = scope_id };

	memcpy(endpoint.gid, gid, sizeof(endpoint.gid));
	return endpoint;
}

bool link_endpoint_equal(const struct link_endpoint *a, const struct link_endpoint *b)
{
	return a->scope_id == b->scope_id && memcmp(a->gid, b->gid, sizeof(a->gid)) == 0;
}

socklen_t link_endpoint_to_sockaddr(const struct link_endpoint *endpoint, uint16_t port,
				    union link_sockaddr *out)
{
	memset(out, 0, sizeof(*out));
	if (gid_is_ipv4(endpoint->gid)) {
		out->in.sin_family = AF_INET;
		out->in.sin_port = htons(port);
		memcpy(&out->in.sin_addr, endpoint->gid + 12, 4);
		return sizeof(out->in);
	}
	out->in6.sin6_family = AF_INET6;
	out->in6.sin6_port = htons(port);
	out->in6.sin6_scope_id = endpoint->scope_id;
	memcpy(&out->in6.sin6_addr, endpoint->gid, 16);
	return sizeof(out->in6);
}

void link_sockaddr_to_gid(const union link_sockaddr *from, uint8_t gid[16], uint16_t *port)
{
	if (from->any.sa_family == AF_INET) {
		gid_from_ipv4(gid, &from->in.sin_addr);
		*port = ntohs(from->in.sin_port);
	} else {
		memcpy(gid, &from->in6.sin6_addr, 16);
		*port = ntohs(from->in6.sin6_port);
	}
}

void link_endpoint_print(const struct link_endpoint *endpoint, char text[LINK_ADDRESS_TEXT])
{
	size_t used;

	if (gid_is_ipv4(endpoint->gid)) {
		inet_ntop(AF_INET, endpoint->gid + 12, text, LINK_ADDRESS_TEXT);
		return;
	}
	inet_ntop(AF_INET6, endpoint->gid, text, LINK_ADDRESS_TEXT);
	used = strlen(text);
	if (endpoint->scope_id)
		snprintf(text + used, LINK_ADDRESS_TEXT - used, "%%%u", endpoint->scope_id);
}
