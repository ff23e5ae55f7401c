/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * uroce's devices for programs that run on the stock libibverbs, without the drop-in library.
 *
 * Link with liburoce.  Devices from here open with ibv_open_device() and serve everything that
 * libibverbs leaves to the provider: protection domains, memory regions, completion queues, queue
 * pairs, ibv_query_device() and ibv_query_port().  What libibverbs itself asks the kernel does not
 * work without the drop-in: GIDs, the GUID and completion channels, for which there are functions
 * here, and ibv_query_pkey(): the one P_Key, at index 0, is 0xffff.
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

/* What the allocator of a parent domain is asked for: resource_type of ibv_alloc_parent_domain(3).
 */
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
 * The uroce devices, ended by NULL; their number goes to *num_devices, which may be NULL.  To be
 * freed with ibv_free_device_list().  NULL with errno on failure.
 */
struct ibv_device **urocedv_get_device_list(int *num_devices);

/* Is it one of uroce's? */
bool urocedv_is_supported(struct ibv_device *device);

/* As ibv_get_device_guid(): network byte order. */
__be64 urocedv_get_device_guid(struct ibv_device *device);

/* As ibv_query_gid_ex(): 0, EINVAL, or ENODATA for an empty place of the table. */
int urocedv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
			 struct ibv_gid_entry *entry);

/* As ibv_create_comp_channel() and ibv_destroy_comp_channel(). */
struct ibv_comp_channel *urocedv_create_comp_channel(struct ibv_context *context);
int urocedv_destroy_comp_channel(struct ibv_comp_channel *channel);

#ifdef __cplusplus
}
#endif

#endif
