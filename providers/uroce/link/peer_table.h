/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Hash table of an address's shared peers.  The key is their transmit socket, destination, hop
 * limit and traffic class.
 */
#ifndef UROCE_LINK_PEER_TABLE_H
#define UROCE_LINK_PEER_TABLE_H

#include "internal.h"

/* Returns the peer with the same key as *wanted, or NULL. */
struct link_peer *link_peer_table_find(const struct link_peer_table *table,
				       const struct link_peer *wanted);
/* Returns 0 or -ENOMEM. */
int link_peer_table_add(struct link_peer_table *table, struct link_peer *peer);
void link_peer_table_remove(struct link_peer_table *table, struct link_peer *peer);
/* The table must be empty. */
void link_peer_table_free(struct link_peer_table *table);

#endif
