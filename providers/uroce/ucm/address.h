/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Socket addresses of the commands as one structure: IPv4, IPv6, and InfiniBand's (AF_IB). */
#ifndef UROCE_UCM_ADDRESS_H
#define UROCE_UCM_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "link/gid.h"

#define UCM_AF_IB 27

struct ucm_address {
	int family;	    /* AF_INET, AF_INET6, UCM_AF_IB; AF_UNSPEC: none */
	uint8_t ip[16];	    /* as in GIDs: IPv4 as ::ffff:a.b.c.d */
	uint16_t port;	    /* host order */
	uint16_t space;	    /* AF_IB: the port space that its service id names, or 0 */
	uint32_t scope_id;  /* interface index, or 0 */
	uint32_t flow_info; /* IPv6: 20 bits, host order */
};

/* How many bytes a socket address of that family has, 0 for unknown ones. */
size_t ucm_address_bytes(int family);
/* bytes are what is there of from.  false: of no known family, or too short for it. */
bool ucm_address_get(const void *from, size_t bytes, struct ucm_address *address);
/*
 * Writes ucm_address_bytes(), or no more of them than there is room for; returns how many.  As the
 * kernel does: an AF_IB address does not fit where QUERY_ROUTE tells addresses.
 */
size_t ucm_address_put(const struct ucm_address *address, void *to, size_t room);

void ucm_address_any(int family, struct ucm_address *address);

/* 0.0.0.0, ::, the GID of zeros. */
bool ucm_address_is_any(const struct ucm_address *address);
bool ucm_address_is_loopback(const struct ucm_address *address);
bool ucm_address_is_multicast(const struct ucm_address *address);

#endif
