/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* The broker of the user, for tools, which have no slot. */
#ifndef UROCE_LINK_GUEST_H
#define UROCE_LINK_GUEST_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/uroce-broker.h>

struct link_guest {
	int fd;
	uint32_t number; /* of the last request */
};

/* Connects to the broker that runs: 0, -ENOENT if none does, or another negative errno. */
int link_guest_open(struct link_guest *guest);
void link_guest_close(struct link_guest *guest);
/*
 * Calls visit for the first slot of each client, by rising slots, until visit returns true. Returns
 * true if it did.
 */
bool link_guest_each(struct link_guest *guest, bool (*visit)(void *arg, uint32_t slot), void *arg);
/* A connection with the client of a slot, for statistics; or a negative errno. */
int link_guest_visit(struct link_guest *guest, uint32_t slot);

#endif
