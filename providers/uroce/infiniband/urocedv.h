/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * uroce devices for programs that use the stock libibverbs, without the drop-in library.
 *
 * Link with liburoce.  The devices are opened with ibv_open_device(), and all calls work that
 * libibverbs forwards to the provider: protection domains, memory regions, completion queues, queue
 * pairs, ibv_query_device(), ibv_query_port().  Calls that libibverbs sends to the kernel do not
 * work without the drop-in: GIDs, the GUID and completion channels, for which there are functions
 * here, and ibv_query_pkey(): the only P_Key, at index 0, is 0xffff.
 */
#ifndef UROCEDV_H
#define UROCEDV_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/types.h>

struct ibv_comp_channel;
struct ibv_context;
struct ibv_device;
struct ibv_gid_entry;

/* Values of resource_type in calls of a parent domain's allocator: ibv_alloc_parent_domain(3). */
enum urocedv_resource {
	UROCEDV_SEND_QUEUE = 1,
	UROCEDV_RECEIVE_QUEUE,
	UROCEDV_SHARED_RECEIVE_QUEUE,
	UROCEDV_COMPLETION_QUEUE,
};

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Returns a NULL-terminated list of the uroce devices, to be freed with ibv_free_device_list(), or
 * NULL with errno.  *num_devices, if not NULL, is set to their number.
 */
struct ibv_device **urocedv_get_device_list(int *num_devices);

/* Returns true if device is a uroce device. */
bool urocedv_is_supported(struct ibv_device *device);

/* As ibv_get_device_guid(): network byte order. */
__be64 urocedv_get_device_guid(struct ibv_device *device);

/* As ibv_query_gid_ex(): returns 0, EINVAL, or ENODATA for an unused entry. */
int urocedv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
			 struct ibv_gid_entry *entry);

/* As ibv_create_comp_channel() and ibv_destroy_comp_channel(). */
struct ibv_comp_channel *urocedv_create_comp_channel(struct ibv_context *context);
int urocedv_destroy_comp_channel(struct ibv_comp_channel *channel);

#ifdef __cplusplus
}
#endif

#endif
