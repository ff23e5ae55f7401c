/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "devices.h"

#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "verbs/context/device.h"

struct gid_search {
	const uint8_t *gid;
	uint32_t scope_id;
	uint32_t number;
	unsigned int index;
};

static bool has_gid(struct uroce_device *device, void *arg)
{
	struct gid_search *gid_search = arg;
	union ibv_gid gid;
	unsigned int index;

	if (gid_search->scope_id && gid_is_link_local(gid_search->gid) &&
	    gid_search->scope_id != device->netdev.index)
		return false;
	memcpy(gid.raw, gid_search->gid, sizeof(gid.raw));
	index = uroce_gid_table_find(&device->gids, &gid);
	if (index == device->gids.entries)
		return false;
	gid_search->number = device->netdev.index;
	gid_search->index = index;
	return true;
}

bool ucm_device_of_gid(const uint8_t gid[16], uint32_t scope_id, uint32_t *number,
		       unsigned int *index)
{
	struct gid_search gid_search = { .gid = gid, .scope_id = scope_id };

	if (!uroce_devices_find(has_gid, &gid_search)) {
		uroce_devices_refresh();
		if (!uroce_devices_find(has_gid, &gid_search))
			return false;
	}
	*number = gid_search.number;
	*index = gid_search.index;
	return true;
}

struct device_search {
	uint32_t number;
	struct ucm_device *device;
};

static bool fill_device(struct uroce_device *device, void *arg)
{
	struct device_search *device_search = arg;
	union ibv_gid gid;

	if (device->netdev.index != device_search->number)
		return false;
	uroce_gid(device, 0, &gid);
	*device_search->device = (struct ucm_device){
		.number = device_search->number,
		.guid = device->node_guid,
		.mtu = (uint8_t)uroce_active_mtu(device->netdev.mtu),
		.loopback = device->netdev.loopback,
	};
	memcpy(device_search->device->gid, gid.raw, sizeof(gid.raw));
	return true;
}

bool ucm_device(uint32_t number, struct ucm_device *device)
{
	struct device_search device_search = { number, device };

	memset(device, 0, sizeof(*device));
	return number != UCM_NO_DEVICE && uroce_devices_find(fill_device, &device_search);
}

bool ucm_device_is_removed(uint32_t number)
{
	return !uroce_devices_has_netdev(number);
}

static bool is_loopback_device(struct uroce_device *device, void *arg)
{
	*(uint32_t *)arg = device->netdev.index;
	return device->netdev.loopback;
}

uint32_t ucm_device_loopback(void)
{
	uint32_t number;

	if (uroce_devices_find(is_loopback_device, &number))
		return number;
	uroce_devices_refresh();
	return uroce_devices_find(is_loopback_device, &number) ? number : UCM_NO_DEVICE;
}

struct gid_list {
	struct gid_entry {
		uint8_t gid[16];
		uint32_t device;
	} * list;
	unsigned int count, places;
};

/* Returns false, except if memory is exhausted, so that all devices are visited. */
static bool collect_gids(struct uroce_device *device, void *arg)
{
	struct gid_list *all = arg;
	union ibv_gid gid;

	for (unsigned int i = 0; i < device->gids.entries; i++) {
		if (!uroce_gid(device, i, &gid))
			continue;
		if (all->count == all->places) {
			unsigned int places = all->places * 2 + 16;
			struct gid_entry *grown = realloc(all->list, places * sizeof(*grown));

			if (!grown)
				return true;
			all->list = grown;
			all->places = places;
		}
		memcpy(all->list[all->count].gid, gid.raw, sizeof(gid.raw));
		all->list[all->count++].device = device->netdev.index;
	}
	return false;
}

void ucm_devices_each_gid(void (*visit)(const uint8_t *gid, uint32_t device, void *arg), void *arg)
{
	struct gid_list all = { 0 };

	uroce_devices_refresh();
	uroce_devices_find(collect_gids, &all);
	for (unsigned int i = 0; i < all.count; i++)
		visit(all.list[i].gid, all.list[i].device, arg);
	free(all.list);
}
