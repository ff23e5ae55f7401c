/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Socket addresses of commands in one structure: IPv4, IPv6 and InfiniBand (AF_IB). */
#ifndef UROCE_UCM_ADDR_ADDRESS_H
#define UROCE_UCM_ADDR_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "util/gid.h"

#define UCM_AF_IB 27

struct ucm_address {
	int family;	     /* AF_INET, AF_INET6, UCM_AF_IB; AF_UNSPEC: none */
	uint8_t ip[16];	     /* as in a GID: IPv4 as ::ffff:a.b.c.d */
	uint16_t port;	     /* host order */
	uint16_t port_space; /* AF_IB: port space in the service id, or 0 */
	uint32_t scope_id;   /* interface index, or 0 */
	uint32_t flow_info;  /* IPv6: 20 bits, host order */
};

/* Returns the size of a socket address of the family, or 0 if the family is unknown. */
size_t ucm_address_bytes(int family);
/*
 * Parses the socket address at from, of which bytes are available.  Returns false if the family is
 * unknown or the address is truncated.
 */
bool ucm_address_get(const void *from, size_t bytes, struct ucm_address *address);
/*
 * Writes the socket address, truncated to room bytes, and returns the number of bytes written.  The
 * kernel truncates as well: an AF_IB address does not fit into the response of QUERY_ROUTE.
 */
size_t ucm_address_put(const struct ucm_address *address, void *to, size_t room);

void ucm_address_any(int family, struct ucm_address *address);

/* ---- route.c ---- */

/* Queries of the kernel's routes. */

/* Returns true if the address belongs to this host. */
bool ucm_route_is_local(const struct ucm_address *address);
/*
 * Finds the source address, without a port, of packets to destination.  bound is the required
 * source address, or the wildcard.  Returns 0 or a positive errno such as ENETUNREACH, EHOSTUNREACH
 * or EADDRNOTAVAIL.
 */
int ucm_route_source(const struct ucm_address *destination, const struct ucm_address *bound,
		     struct ucm_address *source);
/*
 * Returns the size, including the IP header, of the largest packet that the route between two GIDs
 * carries, or 0 if unknown.  scope_id is the interface of a link-local address.
 */
uint32_t ucm_route_mtu(const uint8_t from[16], const uint8_t to[16], uint32_t scope_id);

#endif
