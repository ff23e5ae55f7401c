/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "table.h"

#include <assert.h>
#include <stddef.h>

/*
 * Ids are consecutive, and GUIDs may differ in any byte: multiplication by an odd constant spreads
 * both over the buckets.
 */
static uint32_t hash_bucket(uint64_t major, uint32_t minor)
{
	uint64_t mixed = (major ^ (uint64_t)minor << 17 ^ minor) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(mixed >> 32) % TABLE_BUCKETS;
}

void table_insert(struct table *table, struct table_node *node, uint64_t major, uint32_t minor)
{
	uint32_t bucket = hash_bucket(major, minor);

	assert(!node->in);
	node->major = major;
	node->minor = minor;
	node->in = true;
	node->next = table->bucket[bucket];
	table->bucket[bucket] = node;
}

void table_remove(struct table *table, struct table_node *node)
{
	struct table_node **at = &table->bucket[hash_bucket(node->major, node->minor)];

	if (!node->in)
		return;
	while (*at != node) {
		assert(*at);
		at = &(*at)->next;
	}
	*at = node->next;
	node->next = NULL;
	node->in = false;
}

static struct table_node *next_match(struct table_node *node, uint64_t major, uint32_t minor)
{
	while (node && (node->major != major || node->minor != minor))
		node = node->next;
	return node;
}

struct table_node *table_find(const struct table *table, uint64_t major, uint32_t minor)
{
	return next_match(table->bucket[hash_bucket(major, minor)], major, minor);
}

struct table_node *table_next(const struct table_node *node)
{
	return next_match(node->next, node->major, node->minor);
}
