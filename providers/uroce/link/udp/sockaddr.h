/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Conversion between GIDs and socket addresses */
#ifndef UROCE_LINK_UDP_SOCKADDR_H
#define UROCE_LINK_UDP_SOCKADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "util/gid.h"

/* Size of an address as text: IPv6 text, '%', interface index */
#define LINK_ADDRESS_TEXT 64

union link_sockaddr {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* A GID with its scope; ::ffff:a.b.c.d stands for AF_INET. */
struct link_endpoint {
	uint8_t gid[16];
	uint32_t scope_id;
};

struct link_endpoint link_endpoint_from_gid(const uint8_t gid[16], uint32_t scope_id);
bool link_endpoint_equal(const struct link_endpoint *a, const struct link_endpoint *b);
socklen_t link_endpoint_to_sockaddr(const struct link_endpoint *endpoint, uint16_t port,
				    union link_sockaddr *out);
/* Stores the address and the port (host order) of the sender of a datagram. */
void link_sockaddr_to_gid(const union link_sockaddr *from, uint8_t gid[16], uint16_t *port);
void link_endpoint_print(const struct link_endpoint *endpoint, char text[LINK_ADDRESS_TEXT]);

#endif
