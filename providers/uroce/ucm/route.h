/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* What the kernel's routes say about an address. */
#ifndef UROCE_UCM_ROUTE_H
#define UROCE_UCM_ROUTE_H

#include "address.h"

/* Is it an address of this host? */
bool ucm_route_is_local(const struct ucm_address *address);
/*
 * The address that packets to destination have as their source; bound: what it has to be, or any.
 * Without a port.  0 or a positive errno: ENETUNREACH, EHOSTUNREACH, EADDRNOTAVAIL and so on.
 */
int ucm_route_source(const struct ucm_address *destination, const struct ucm_address *bound,
		     struct ucm_address *source);
/*
 * The largest packet that the route from one GID to the other carries, IP header included; 0: that
 * cannot be told.  scope_id: the interface of a link-local address.
 */
uint32_t ucm_route_mtu(const uint8_t from[16], const uint8_t to[16], uint32_t scope_id);

#endif
