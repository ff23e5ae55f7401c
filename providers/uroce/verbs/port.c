/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* State of a device's port, for all users of the device. */
#include <string.h>

#include "verbs/context/device.h"

/* Around the payload of the largest packet: IPv6, UDP, BTH, XRCETH, RETH, ImmDt, ICRC. */
#define PACKET_OVERHEAD (40 + 8 + 12 + 4 + 16 + 4 + 4)
#define MTU_BYTES(mtu) (128u << (mtu))

bool uroce_device_netdev(struct uroce_device *device, struct netdev *netdev)
{
	bool exists;

	pthread_mutex_lock(&device->port_lock);
	*netdev = device->netdev;
	exists = device->exists;
	pthread_mutex_unlock(&device->port_lock);
	return exists;
}

bool uroce_gid(struct uroce_device *device, unsigned int index, union ibv_gid *gid)
{
	static const union ibv_gid empty;

	*gid = empty;
	pthread_mutex_lock(&device->port_lock);
	if (index < device->gids.entries)
		*gid = device->gids.gid[index];
	pthread_mutex_unlock(&device->port_lock);
	return memcmp(gid, &empty, sizeof(empty)) != 0;
}

enum ibv_mtu uroce_active_mtu(uint32_t netdev_mtu)
{
	int mtu = IBV_MTU_4096;

	while (mtu > IBV_MTU_256 && MTU_BYTES(mtu) + PACKET_OVERHEAD > netdev_mtu)
		mtu--;
	return (enum ibv_mtu)mtu;
}
