/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Hash table whose nodes are embedded in the objects they belong to.  The key is a pair of
 * integers; several nodes may have the same key.
 */
#ifndef UROCE_UTIL_TABLE_H
#define UROCE_UTIL_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/* Enough for short chains with tens of thousands of connections. */
#define TABLE_BUCKETS 8192

/* Must be zeroed before its first use. */
struct table_node {
	struct table_node *next;
	uint64_t major;
	uint32_t minor;
	bool in;
};

struct table {
	struct table_node *bucket[TABLE_BUCKETS];
};

/* The node must not be in a table. */
void table_insert(struct table *table, struct table_node *node, uint64_t major, uint32_t minor);
/* Does nothing if the node is not in the table. */
void table_remove(struct table *table, struct table_node *node);
/* Return the first node with this key, and the next one with the same key as node; or NULL. */
struct table_node *table_find(const struct table *table, uint64_t major, uint32_t minor);
struct table_node *table_next(const struct table_node *node);

#endif
