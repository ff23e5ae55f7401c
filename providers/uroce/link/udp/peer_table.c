/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "link/link_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BUCKETS 64

static uint32_t mix_hash(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	return (uint32_t)(hash >> 32);
}

static struct link_peer **bucket_of(const struct link_peer_table *table,
				    const struct link_peer *peer)
{
	uint64_t half[2];
	uint32_t hash;

	memcpy(half, peer->dst.gid, sizeof(half));
	hash = mix_hash(mix_hash(half[0], half[1]), peer->dst.scope_id);
	hash = mix_hash(hash, (uintptr_t)peer->tx);
	hash = mix_hash(hash, (uint64_t)peer->hop_limit << 8 | peer->traffic_class);
	return &table->bucket[hash & (table->buckets - 1)];
}

static bool has_same_key(const struct link_peer *a, const struct link_peer *b)
{
	return a->tx == b->tx && a->hop_limit == b->hop_limit &&
	       a->traffic_class == b->traffic_class && link_endpoint_equal(&a->dst, &b->dst);
}

struct link_peer *link_peer_table_find(const struct link_peer_table *table,
				       const struct link_peer *wanted)
{
	struct link_peer *peer = table->buckets ? *bucket_of(table, wanted) : NULL;

	while (peer && !has_same_key(peer, wanted))
		peer = peer->next;
	return peer;
}

static void insert_peer(struct link_peer_table *table, struct link_peer *peer)
{
	struct link_peer **bucket = bucket_of(table, peer);

	peer->next = *bucket;
	*bucket = peer;
}

static int grow_table(struct link_peer_table *table)
{
	uint32_t buckets = table->buckets ? 2 * table->buckets : FIRST_BUCKETS;
	struct link_peer_table old = *table;

	table->bucket = calloc(buckets, sizeof(*table->bucket));
	if (!table->bucket) {
		*table = old;
		return -ENOMEM;
	}
	table->buckets = buckets;
	for (uint32_t i = 0; i < old.buckets; i++) {
		while (old.bucket[i]) {
			struct link_peer *peer = old.bucket[i];

			old.bucket[i] = peer->next;
			insert_peer(table, peer);
		}
	}
	free(old.bucket);
	return 0;
}

int link_peer_table_add(struct link_peer_table *table, struct link_peer *peer)
{
	/* Without memory for more buckets only the chains become longer. */
	if (table->count >= table->buckets && grow_table(table) && !table->buckets)
		return -ENOMEM;
	insert_peer(table, peer);
	table->count++;
	return 0;
}

void link_peer_table_remove(struct link_peer_table *table, struct link_peer *peer)
{
	struct link_peer **from = bucket_of(table, peer);

	while (*from != peer)
		from = &(*from)->next;
	*from = peer->next;
	table->count--;
}

void link_peer_table_free(struct link_peer_table *table)
{
	free(table->bucket);
	*table = (struct link_peer_table){ 0 };
}
