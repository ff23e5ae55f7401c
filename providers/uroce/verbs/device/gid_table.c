/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <string.h>

#include "verbs/device.h"

static const union ibv_gid empty;

static bool same(const union ibv_gid *a, const union ibv_gid *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static bool has_address(const struct netdev *netdev, const union ibv_gid *gid)
{
	unsigned int i;

	for (i = 0; netdev && i < netdev->address_count; i++) {
		if (memcmp(netdev->address[i], gid, sizeof(*gid)) == 0)
			return true;
	}
	return false;
}

static union ibv_gid *find(union ibv_gid table[UROCE_GID_TABLE], const union ibv_gid *gid)
{
	unsigned int i;

	for (i = 0; i < UROCE_GID_TABLE; i++) {
		if (same(&table[i], gid))
			return &table[i];
	}
	return NULL;
}

bool uroce_gid_table_update(union ibv_gid table[UROCE_GID_TABLE], const struct netdev *netdev,
			    bool keep_places)
{
	union ibv_gid before[UROCE_GID_TABLE], gid, *place;
	unsigned int i;

	memcpy(before, table, sizeof(before));
	for (i = 0; i < UROCE_GID_TABLE; i++) {
		if (!keep_places || !has_address(netdev, &table[i]))
			table[i] = empty;
	}
	for (i = 0; netdev && i < netdev->address_count; i++) {
		memcpy(&gid, netdev->address[i], sizeof(gid));
		place = find(table, &gid) ? NULL : find(table, &empty);
		if (place)
			*place = gid;
	}
	return memcmp(before, table, sizeof(before)) != 0;
}
