/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What libibverbs asks the kernel and not the provider: GIDs and P_Keys.  The drop-in library and
 * the connection manager ask here.  Functions return 0 or a positive errno.
 */
#ifndef UROCE_VERBS_QUERY_H
#define UROCE_VERBS_QUERY_H

#include "verbs/uroce.h"
#include "verbs/way_in.h"

/* EINVAL: no such port or index; ENODATA: nothing in this place of the table. */
int uroce_query_gid_entry(struct ibv_context *context, uint32_t port, uint32_t index,
			  struct ibv_gid_entry *entry);
/* In network byte order. */
int uroce_query_pkey(struct ibv_context *context, uint32_t port, int index, __be16 *pkey);

/* Of a device that need not be open.  ENODEV: its interface is gone. */
int uroce_describe_device(struct ibv_device *device, struct uroce_device_facts *facts);

#endif
