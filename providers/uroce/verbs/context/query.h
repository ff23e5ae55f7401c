/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Queries that libibverbs sends to the kernel and not to the provider: GIDs and P_Keys.  Used by
 * the drop-in library and the connection manager.  Functions return 0 or a positive errno.
 */
#ifndef UROCE_VERBS_QUERY_H
#define UROCE_VERBS_QUERY_H

#include "verbs/uroce.h"
#include "verbs/abi/dropin_ops.h"

/* EINVAL: no such port or index; ENODATA: unused entry. */
int uroce_query_gid_entry(struct ibv_context *context, uint32_t port, uint32_t index,
			  struct ibv_gid_entry *entry);
/* pkey in network byte order. */
int uroce_query_pkey(struct ibv_context *context, uint32_t port, int index, __be16 *pkey);

/* The device need not be open.  ENODEV: its interface no longer exists. */
int uroce_describe_device(struct ibv_device *device, struct uroce_device_desc *desc);

#endif
