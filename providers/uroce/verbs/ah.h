/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Address vectors: what ibv_modify_qp() and ibv_create_ah() accept, and as a route.
 */
#ifndef UROCE_VERBS_AH_H
#define UROCE_VERBS_AH_H

#include "uroce.h"

struct uroce_ah {
	struct ibv_ah base;
	struct ibv_ah_attr attr;
	struct uroce_pd *pd;
};

static inline struct uroce_ah *to_uroce_ah(struct ibv_ah *ah)
{
	return (struct uroce_ah *)ah;
}

/*
 * Is attr a way that this device can go: port 1, a global route (RoCE has no other), from a GID
 * index that holds an address, to an address of the same kind?  0, or EINVAL.  route may be NULL,
 * else all but its dest_qpn is filled.
 */
int uroce_ah_check(struct uroce_device *device, const struct ibv_ah_attr *attr,
		   struct progress_route *route);

#endif
