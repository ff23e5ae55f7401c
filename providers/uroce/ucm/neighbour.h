/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * An address is resolved when the host knows where the next hop to it is.  As a rule it does; if
 * not, a datagram makes it ask, and a thread looks now and then whether there was an answer.
 */
#ifndef UROCE_UCM_NEIGHBOUR_H
#define UROCE_UCM_NEIGHBOUR_H

#include "address.h"
#include "link/neighbour.h"

/* The path of packets to a destination, as far as this host knows it. */
struct ucm_path {
	struct ucm_address source;
	uint32_t device;
	unsigned int index; /* of sgid */
	uint8_t sgid[16], dgid[16];
};

/* What is waited for: until then, for this id (ucm_id_again()). */
struct ucm_awaited {
	struct ucm_awaited *next;
	uint32_t handle;
	uint64_t serial;
	uint64_t until;	 /* progress_now() */
	uint64_t nudged; /* when the host was made to ask; 0: not yet */
	bool known;
	struct ucm_address destination;
	struct ucm_path path;
	struct neighbour next_hop;
};

/* Without the lock.  Does the host have to ask for the next hop? */
bool ucm_neighbour_is_missing(const struct ucm_path *path, const struct ucm_address *destination,
			      struct neighbour *next_hop);
/*
 * ucm_resolved() will be called in another thread.  With the lock, which is given up meanwhile;
 * awaited was malloc'ed, and is ours.
 */
void ucm_neighbour_await(struct ucm_awaited *awaited);
void ucm_neighbours_forked(void);

struct ucm_id;
/* command_resolve.c: the end of RESOLVE, with 0 or a negative errno.  With the lock. */
void ucm_resolved(struct ucm_id *id, const struct ucm_path *path, int status);

#endif
