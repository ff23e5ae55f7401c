/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The host's neighbours: does it know where the next hop to an address is?  As the kernel's tables
 * have it, by libnl-3; and the kernel may be made to ask.
 */
#ifndef UROCE_LINK_NEIGHBOUR_H
#define UROCE_LINK_NEIGHBOUR_H

#include <stdbool.h>
#include <stdint.h>

struct neighbour {
	uint32_t interface;
	uint8_t address[16]; /* as in a GID */
};

/*
 * The next hop from sgid to dgid, both as in GIDs; interface: of link-local addresses, else 0.
 * false: none has to be found, because dgid is this host's own, or the interface needs no link
 * addresses; or it cannot be said.
 */
bool neighbour_find(const uint8_t sgid[16], const uint8_t dgid[16], uint32_t interface,
		    struct neighbour *next_hop);
/* Can packets be sent to it without asking for it first?  Also true where that cannot be said. */
bool neighbour_is_known(const struct neighbour *neighbour);
/* The kernel asks for the next hop, if it does not know it: a datagram without bytes is sent. */
void neighbour_ask(const uint8_t sgid[16], const uint8_t dgid[16], uint32_t interface);
/*
 * Waits until the next hop is known, as the driver of an adapter does before a queue pair may
 * receive.  Otherwise the kernel asks when the first packet leaves, and again after a whole second
 * when that question is lost, as it may be on an interface that was just made; the retries of many
 * a program last less.  Blocks for 1.5 s when there is no answer; a next hop that has not answered
 * is not waited for again within half a minute.  false: not known.
 */
bool neighbour_meet(const uint8_t sgid[16], const uint8_t dgid[16], uint32_t interface);

#endif
