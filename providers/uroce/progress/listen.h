/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The insides of struct progress_listen: which addresses datagram queue pairs hear.
 */
#ifndef UROCE_PROGRESS_LISTEN_H
#define UROCE_PROGRESS_LISTEN_H

#include "instance.h"

/* Changed under turn_lock. */
struct progress_listen {
	struct link_addr **addr;
	unsigned int count;
};

/* Caller is inside a turn. */
static inline bool listen_hears(const struct progress_listen *listen, const struct link_addr *addr)
{
	for (unsigned int i = 0; i < listen->count; i++)
		if (listen->addr[i] == addr)
			return true;
	return false;
}

#endif
