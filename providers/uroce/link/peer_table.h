/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The peers of an address that several users share, by what they have in common: transmit socket,
 * destination, hop limit and traffic class.  A hash table that grows with their number.
 */
#ifndef UROCE_LINK_PEER_TABLE_H
#define UROCE_LINK_PEER_TABLE_H

#include "internal.h"

/* The peer that is the same as *wanted, or NULL. */
struct link_peer *link_peer_table_find(const struct link_peer_table *table,
				       const struct link_peer *wanted);
/* 0 or -ENOMEM. */
int link_peer_table_add(struct link_peer_table *table, struct link_peer *peer);
void link_peer_table_remove(struct link_peer_table *table, struct link_peer *peer);
/* It is empty. */
void link_peer_table_free(struct link_peer_table *table);

#endif
