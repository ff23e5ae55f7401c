/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <stdlib.h>
#include <string.h>

#include "device.h"

static const union ibv_gid empty;

/*
 * Returns the index of gid, or count if it is not among the gids.  Starts at the likely index,
 * because a GID table and the addresses of its interface have nearly the same order.
 */
static unsigned int find_gid(const void *gids, unsigned int count, const void *gid,
			     unsigned int start)
{
	const union ibv_gid *list = gids;

	for (unsigned int i = 0; i < count; i++) {
		unsigned int index = (start + i) % count;

		if (!memcmp(&list[index], gid, sizeof(*list)))
			return index;
	}
	return count;
}

unsigned int uroce_gid_table_find(const struct uroce_gid_table *table, const union ibv_gid *gid)
{
	return find_gid(table->gid, table->entries, gid, 0);
}

/* Clears the entries whose addresses have been removed; returns true if there were any. */
static bool clear_removed_addresses(struct uroce_gid_table *table, const struct netdev *netdev)
{
	unsigned int count = netdev ? netdev->address_count : 0;
	bool changed = false;

	for (unsigned int i = 0; i < table->entries; i++) {
		if (!memcmp(&table->gid[i], &empty, sizeof(empty)) ||
		    find_gid(netdev ? netdev->address : NULL, count, &table->gid[i], i) < count)
			continue;
		table->gid[i] = empty;
		changed = true;
	}
	return changed;
}

static void set_gid(struct uroce_gid_table *table, unsigned int index, const uint8_t gid[16])
{
	memcpy(&table->gid[index], gid, sizeof(*table->gid));
	if (table->entries <= index)
		table->entries = index + 1;
}

/* Adds new addresses in free entries; returns true if there were any. */
static bool add_new_addresses(struct uroce_gid_table *table, const struct netdev *netdev)
{
	bool changed = false;

	for (unsigned int i = 0; i < netdev->address_count; i++) {
		unsigned int index = find_gid(table->gid, table->entries, netdev->address[i], i);

		if (index < table->entries)
			continue;
		index = find_gid(table->gid, table->entries, &empty, 0);
		if (index == UROCE_GID_TABLE)
			break;
		set_gid(table, index, netdev->address[i]);
		changed = true;
	}
	return changed;
}

static bool replace_table(struct uroce_gid_table *table, const struct netdev *netdev)
{
	unsigned int count = netdev ? netdev->address_count : 0;
	bool changed = table->entries != count ||
		       (count && memcmp(table->gid, netdev->address, count * sizeof(*table->gid)));

	if (count)
		memcpy(table->gid, netdev->address, count * sizeof(*table->gid));
	table->entries = count;
	return changed;
}

bool uroce_gid_table_update(struct uroce_gid_table *table, const struct netdev *netdev,
			    bool keep_indexes)
{
	bool changed;

	if (!keep_indexes)
		return replace_table(table, netdev);
	changed = clear_removed_addresses(table, netdev);
	while (table->entries && !memcmp(&table->gid[table->entries - 1], &empty, sizeof(empty)))
		table->entries--;
	return (netdev && add_new_addresses(table, netdev)) || changed;
}
