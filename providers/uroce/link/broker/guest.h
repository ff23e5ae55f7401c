/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Client of the user's broker for tools, which have no slot */
#ifndef UROCE_LINK_BROKER_GUEST_H
#define UROCE_LINK_BROKER_GUEST_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/uroce-broker.h>

struct link_guest {
	int fd;
	uint32_t number; /* sequence number of the last request */
};

/* Connects to the running broker.  Returns 0 or a negative errno: -ENOENT if there is none. */
int link_guest_open(struct link_guest *guest);
void link_guest_close(struct link_guest *guest);
/*
 * Calls visit for the first slot of each client, in ascending order, until visit returns true.
 * Returns true if visit did.
 */
bool link_guest_for_each(struct link_guest *guest, bool (*visit)(void *arg, uint32_t slot),
			 void *arg);
/* Returns a connection to the slot's client, for a tool's request, or a negative errno. */
int link_guest_connect(struct link_guest *guest, uint32_t slot);

#endif
