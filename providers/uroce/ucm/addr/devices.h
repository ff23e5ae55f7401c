/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Devices for the connection manager.  The number of a device is its interface index. */
#ifndef UROCE_UCM_ADDR_DEVICES_H
#define UROCE_UCM_ADDR_DEVICES_H

#include <stdbool.h>
#include <stdint.h>

#define UCM_NO_DEVICE 0
/* Hop limit of sent packets, as in the kernel.  rsockets takes 1 for a local subnet. */
#define UCM_HOP_LIMIT 64

struct ucm_device {
	uint32_t number;
	uint64_t guid; /* host order */
	uint8_t mtu;   /* code of the path MTU: 1 is 256 bytes, 5 is 4096 */
	bool loopback;
	uint8_t gid[16]; /* GID 0 */
};

/*
 * Finds the device that has gid, and the index of gid there.  scope_id, if not 0, is the interface
 * of a link-local address.  Reads the list of interfaces again if no device has gid.  Returns false
 * if there is none.
 */
bool ucm_device_of_gid(const uint8_t gid[16], uint32_t scope_id, uint32_t *number,
		       unsigned int *index);
bool ucm_device(uint32_t number, struct ucm_device *device);
/* Returns true if the interface has been removed, false if it is only down. */
bool ucm_device_is_removed(uint32_t number);
/* Returns the number of the loopback device, or UCM_NO_DEVICE. */
uint32_t ucm_device_loopback(void);
/* Calls visit, without locks, for every GID of every device that is up. */
void ucm_devices_each_gid(void (*visit)(const uint8_t *gid, uint32_t device, void *arg), void *arg);

#endif
