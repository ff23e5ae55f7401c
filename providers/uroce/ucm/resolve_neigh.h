/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * An address is resolved once the host knows the link address of the next hop.  Usually it does;
 * otherwise a datagram makes the host send a query, and a thread polls for the result.
 */
#ifndef UROCE_UCM_RESOLVE_NEIGH_H
#define UROCE_UCM_RESOLVE_NEIGH_H

#include "ucm/addr/address.h"
#include "link/netlink/neighbour.h"

struct ucm_id;

/* Source of packets to a destination. */
struct ucm_path {
	struct ucm_address source;
	uint32_t device;	 /* interface index */
	unsigned int sgid_index; /* GID index of sgid */
	uint8_t sgid[16], dgid[16];
};

/* Pending resolution for the id with handle and serial (ucm_id_revalidate()). */
struct ucm_neigh_wait {
	struct ucm_neigh_wait *next;
	uint32_t handle;
	uint64_t serial;
	uint64_t deadline; /* as progress_now() */
	uint64_t queried;  /* time of the last datagram that triggered a query; 0: none */
	bool resolved;
	struct ucm_address destination;
	struct ucm_path path;
	struct neighbour next_hop;
	/* Called with the lock held.  status is 0 or -ETIMEDOUT. */
	void (*complete)(struct ucm_id *id, const struct ucm_path *path, int status);
};

/*
 * Returns true and sets *next_hop if the link address of the next hop must be resolved; false also
 * if there is none (multicast, this host, no route).  Called without the lock.
 */
bool ucm_neigh_is_unresolved(const struct ucm_path *path, const struct ucm_address *destination,
			     struct neighbour *next_hop);
/*
 * Takes ownership of wait, which was malloc'ed.  A thread of its own calls wait->complete, or this
 * one if none can be started; if the id has ended, wait is only freed.  Called with the lock held;
 * releases it in between.
 */
void ucm_neigh_resolve_later(struct ucm_neigh_wait *wait);
void ucm_neigh_forked(void);

#endif
