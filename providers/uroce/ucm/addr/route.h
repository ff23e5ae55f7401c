/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Queries of the kernel's routes. */
#ifndef UROCE_UCM_ADDR_ROUTE_H
#define UROCE_UCM_ADDR_ROUTE_H

#include "address.h"

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
