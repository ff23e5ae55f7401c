/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The devices of this process: one per network interface that has been up with an address since the
 * process first looked.  Interfaces are identified by their index: a device keeps its interface
 * when that is renamed, and ends when the interface is deleted or moved to another network
 * namespace.  Devices are updated whenever a list is requested and, while contexts are open, when
 * the kernel reports a change; each change is reported once to the open contexts.
 *
 * Locks, in this order: the devices lock (lists of devices and contexts), then the port_lock of a
 * device or the async_lock of a context.
 */
#ifndef UROCE_VERBS_CONTEXT_DEVICE_H
#define UROCE_VERBS_CONTEXT_DEVICE_H

#include "verbs/uroce.h"
#include "verbs/abi/dropin_ops.h"

static inline struct uroce_device *to_uroce_device(struct ibv_device *device)
{
	return (struct uroce_device *)device;
}

/* Sets the operations of all devices, before the first list is requested. */
void uroce_devices_set_ops(const struct verbs_device_ops *ops);

/*
 * Returns the devices whose interface is up and has an address, loopback last, in a malloc'ed list.
 * Each has one reference of the list, which ibv_free_device_list() drops.  Returns 0 or a positive
 * errno.
 */
int uroce_list_devices(struct ibv_device ***list, unsigned int *count);

/* Reads all interfaces and raises events for changes.  Returns 0 or a positive errno. */
int uroce_devices_refresh(void);

/* Copies the interface as last read, without addresses.  Returns false if it no longer exists. */
bool uroce_device_netdev(struct uroce_device *device, struct netdev *netdev);

/*
 * Between these two calls, changes are reported to context.  The first returns false if the
 * interface no longer exists.
 */
bool uroce_devices_add_context(struct uroce_context *context);
void uroce_devices_remove_context(struct uroce_context *context);

/* Returns the device of the open context whose cmd_fd is this file, or NULL. */
struct ibv_device *uroce_devices_find_by_file(dev_t file_system, uint64_t file);

/*
 * Returns true if matches() returns true for a device whose interface is up and has an address.
 * Calls it for one device after another with the devices lock held.
 */
bool uroce_devices_find(bool (*matches)(struct uroce_device *device, void *arg), void *arg);

/*
 * Returns true if there is a device for the interface, up or down, which existed when the
 * interfaces were last read.
 */
bool uroce_devices_has_netdev(uint32_t netdev_index);

/* Calls visit() under the devices lock for each device with open contexts (open: their number). */
void uroce_devices_visit_open(void (*visit)(struct uroce_device *device, unsigned int open,
					    void *arg),
			      void *arg);

/* Allocates zeroed memory for a device, never freed, or returns NULL; under the devices lock. */
void *uroce_device_alloc(size_t bytes);

/* Returns a GUID for an interface without a MAC address, or with that of another one. */
uint64_t uroce_local_guid(const struct netdev *netdev);

/*
 * Updates table to the addresses of netdev (NULL: none) and returns true if it changed.  With
 * keep_indexes, addresses that remain keep their index and new ones get free entries, because QPs
 * in use refer to addresses by index; otherwise the table gets the order of netdev.
 */
bool uroce_gid_table_update(struct uroce_gid_table *table, const struct netdev *netdev,
			    bool keep_indexes);
/* Returns the index of gid, or table->entries if it is not in the table. */
unsigned int uroce_gid_table_find(const struct uroce_gid_table *table, const union ibv_gid *gid);

/* ---- query.c ---- */

/*
 * Queries that libibverbs sends to the kernel and not to the provider; the drop-in library sends
 * them here (dropin_ops.h).  Functions return 0 or a positive errno.
 */

/* EINVAL: no such port or index; ENODATA: unused entry. */
int uroce_query_gid_entry(struct ibv_context *context, uint32_t port, uint32_t index,
			  struct ibv_gid_entry *entry);
/* pkey in network byte order. */
int uroce_query_pkey(struct ibv_context *context, uint32_t port, int index, __be16 *pkey);

/* The device need not be open.  ENODEV: its interface no longer exists. */
int uroce_describe_device(struct ibv_device *device, struct uroce_device_desc *desc);

#endif
