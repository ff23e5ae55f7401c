/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Link-layer addresses of next hops: whether one is known according to the kernel's neighbour
 * tables, which libnl-3 reads, and how to make the kernel resolve one
 */
#ifndef UROCE_LINK_NETLINK_NEIGHBOUR_H
#define UROCE_LINK_NETLINK_NEIGHBOUR_H

#include <stdbool.h>
#include <stdint.h>

#define NEIGHBOUR_MAC_BYTES 6
#define NEIGHBOUR_NO_VLAN 0xffff

struct neighbour {
	uint32_t interface;
	uint8_t address[16]; /* as in a GID */
};

/*
 * Finds the next hop from sgid to dgid, both as in GIDs; interface is that of link-local addresses,
 * else 0.  Returns false if there is nothing to resolve (dgid is an address of this host, or the
 * interface has no link-layer addresses), or if the next hop cannot be determined.
 */
bool neighbour_find(const uint8_t sgid[16], const uint8_t dgid[16], uint32_t interface,
		    struct neighbour *next_hop);
/* Returns true if the neighbour is resolved, or if that cannot be determined. */
bool neighbour_is_resolved(const struct neighbour *neighbour);
/*
 * Makes the kernel resolve the next hop, unless it is known, by sending an empty datagram.  sgid
 * may be NULL.
 */
void neighbour_probe(const uint8_t sgid[16], const uint8_t dgid[16], uint32_t interface);
/*
 * Waits until the next hop is resolved, as the driver of an adapter does before a queue pair may
 * receive.  Otherwise the kernel resolves it when the first packet is sent, and repeats a lost
 * solicitation only after a second (solicitations are often lost on an interface that was just
 * created); many programs retry for less time than that.  Blocks for up to 1.5 s.  A next hop that
 * has not answered is not waited for again for half a minute.  Returns false if the next hop is not
 * resolved.
 */
bool neighbour_wait_resolved(const uint8_t sgid[16], const uint8_t dgid[16], uint32_t interface);

/*
 * Stores the destination Ethernet address of packets that the interface sends to dgid, and the VLAN
 * ID of the interface or NEIGHBOUR_NO_VLAN.  May trigger ARP or NDP and then blocks for up to 3 s.
 * Returns 0 or a negative errno; -EHOSTUNREACH if there is no route or the neighbour does not
 * answer.
 */
int neighbour_resolve_mac(uint32_t interface, const uint8_t dgid[16],
			  uint8_t mac[NEIGHBOUR_MAC_BYTES], uint16_t *vlan);

#endif
