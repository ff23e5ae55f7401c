/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Definition of struct progress_listen: local addresses from which datagram QPs receive. */
#ifndef UROCE_PROGRESS_LISTEN_H
#define UROCE_PROGRESS_LISTEN_H

#include "instance.h"

/* Changed under turn_lock. */
struct progress_listen {
	struct link_addr **addr;
	unsigned int count;
};

/* Returns true if addr is in the set.  Caller runs the cycle. */
static inline bool listen_hears(const struct progress_listen *listen, const struct link_addr *addr)
{
	for (unsigned int i = 0; i < listen->count; i++)
		if (listen->addr[i] == addr)
			return true;
	return false;
}

#endif
