/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What the connection manager has to know of the devices.  A device's number is the index of its
 * interface.
 */
#ifndef UROCE_UCM_DEVICES_H
#define UROCE_UCM_DEVICES_H

#include <stdbool.h>
#include <stdint.h>

#define UCM_NO_DEVICE 0
/* Of what we send: the kernel's default, and more than 1, for rsockets take 1 for a local subnet.
 */
#define UCM_HOP_LIMIT 64

struct ucm_device {
	uint32_t number;
	uint64_t guid; /* host order */
	uint8_t mtu;   /* code of the path MTU: 1 is 256 bytes, 5 is 4096 */
	bool loopback;
	uint8_t gid[16]; /* at index 0 */
};

/*
 * The device that has gid, and its index there; scope_id, if not 0, names the interface of a
 * link-local address.  Interfaces are read anew if none has it.
 */
bool ucm_device_of_gid(const uint8_t gid[16], uint32_t scope_id, uint32_t *number,
		       unsigned int *index);
bool ucm_device(uint32_t number, struct ucm_device *device);
/* Its interface is gone, and not only down. */
bool ucm_device_is_gone(uint32_t number);
/* The number of the loopback device, or UCM_NO_DEVICE. */
uint32_t ucm_device_loopback(void);
/* Every address of every device that is up.  visit is called without locks. */
void ucm_devices_each_gid(void (*visit)(const uint8_t *gid, uint32_t device, void *arg), void *arg);

#endif
