/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The devices of this process: one per network interface that has been up with an address since
 * the process looked first.  An interface is what has its index: a device follows it when it is
 * renamed, and ends when it is deleted or moves to another network namespace.  Devices are updated
 * whenever a list is asked for and, while contexts are open, when the kernel reports a change; each
 * change is reported to the open contexts once.
 *
 * Locks, in this order: the devices' lock (lists of devices and contexts), then a device's
 * port_lock or a context's async_lock.
 */
#ifndef UROCE_VERBS_DEVICE_H
#define UROCE_VERBS_DEVICE_H

#include "uroce.h"

extern const struct verbs_device_ops uroce_device_ops;

static inline struct uroce_device *to_uroce_device(struct ibv_device *device)
{
	return (struct uroce_device *)device;
}

bool uroce_owns_device(const struct ibv_device *device);

/*
 * The devices whose interface is up and has an address, loopback last; each is held once for the
 * list, as ibv_free_device_list() lets go of it.  *list is malloc'ed.  0 or a positive errno.
 */
int uroce_list_devices(struct ibv_device ***list, unsigned int *count);

/* Read all interfaces and tell the open contexts what has changed.  0 or a positive errno. */
int uroce_devices_refresh(void);

/* A copy of the interface as last read; false when it is gone. */
bool uroce_device_netdev(struct uroce_device *device, struct netdev *netdev);

/*
 * Changes are reported to a context between these two calls.  The first one returns false if the
 * interface has gone.
 */
bool uroce_devices_add_context(struct uroce_context *context);
void uroce_devices_remove_context(struct uroce_context *context);

/* The device of the open context whose file (struct uroce_context) that is; NULL: there is none. */
struct ibv_device *uroce_devices_of_file(dev_t file_system, uint64_t file);

/*
 * Is matches() true of a device whose interface is up and has an address?  Asked one after the
 * other, under the devices' lock.
 */
bool uroce_devices_find(bool (*matches)(struct uroce_device *device, void *arg), void *arg);

/* Is there an interface of that index that has been a device?  Up or not; as last read. */
bool uroce_devices_has(uint32_t netdev_index);

/* Each device that has open contexts, with their number; under the devices' lock. */
void uroce_devices_visit_open(void (*visit)(struct uroce_device *device, unsigned int open,
					    void *arg),
			      void *arg);

/*
 * A child of fork() has one thread; locks that others held would be held for ever.  So the lists'
 * lock is taken around the fork, and the small ones, which are never held while it is waited for,
 * begin anew in the child.
 */
void uroce_devices_fork_prepare(void);
void uroce_devices_fork_parent(void);
void uroce_devices_fork_child(void);

/* Zeroed memory for a device, for ever; NULL: there is none.  Under the devices' lock. */
void *uroce_device_room(size_t bytes);

/* The GUID of an interface without MAC address, or whose MAC address another one has as well. */
uint64_t uroce_local_guid(const struct netdev *netdev);

/*
 * Make table hold the addresses of netdev (NULL: none).  keep_places: those that stay keep their
 * index and new ones take free places, as queue pairs in use name addresses by index; otherwise the
 * table is written anew, in the order of netdev.  Returns whether anything has changed.
 */
bool uroce_gid_table_update(struct uroce_gid_table *table, const struct netdev *netdev,
			    bool keep_places);
/* The place of gid; table->places: it has none. */
unsigned int uroce_gid_table_find(const struct uroce_gid_table *table, const union ibv_gid *gid);

#endif
