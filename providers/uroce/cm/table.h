/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A hash table of nodes that lie in what they belong to.  A key is a pair of numbers; several nodes
 * may have the same.
 */
#ifndef UROCE_CM_TABLE_H
#define UROCE_CM_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/* There may be tens of thousands of connections: the chains stay short. */
#define TABLE_BUCKETS 8192

/* Zeroed before its first use. */
struct table_node {
	struct table_node *next;
	uint64_t major;
	uint32_t minor;
	bool in;
};

struct table {
	struct table_node *bucket[TABLE_BUCKETS];
};

/* It must be out. */
void cm_table_insert(struct table *table, struct table_node *node, uint64_t major, uint32_t minor);
/* It may be out already. */
void cm_table_remove(struct table *table, struct table_node *node);
/* The first with this key, and the next with the same; or NULL. */
struct table_node *cm_table_find(const struct table *table, uint64_t major, uint32_t minor);
struct table_node *cm_table_next(const struct table_node *node);

#endif
