/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Address vectors: what ibv_modify_qp() and ibv_create_ah() accept, and as a route.
 */
#ifndef UROCE_VERBS_AH_H
#define UROCE_VERBS_AH_H

#include "progress/datagram.h"
#include "verbs/uroce.h"

/*
 * Lives on after ibv_destroy_ah() as long as requests refer to it.  The last reference may be
 * dropped under locks that do not allow to close its peer; that is left to the next control call,
 * which holds none.
 */
struct uroce_ah {
	struct ibv_ah base;
	struct ibv_ah_attr attr;
	struct uroce_pd *pd;	   /* not after ibv_destroy_ah() */
	struct progress *progress; /* constant */
	unsigned int generation;   /* forked.h */
	struct progress_path path; /* constant */
	struct uroce_belonging belonging;
	atomic_uint users; /* the application's hold and one for each request */
	struct uroce_ah *next_dead;
};

static inline struct uroce_ah *to_uroce_ah(struct ibv_ah *ah)
{
	return (struct uroce_ah *)ah;
}

/* Any thread, whatever locks it holds. */
void uroce_ah_hold(struct uroce_ah *ah);
void uroce_ah_release(struct uroce_ah *ah);
/* Close the peers of handles without references.  Control call: without locks. */
void uroce_ah_bury(void);

/*
 * Is attr a path that this device can take: port 1, a global route (RoCE has no other), from a GID
 * index that holds an address, to an address of the same kind?  0, or EINVAL.  route may be NULL,
 * else all but its dest_qpn is filled.
 */
int uroce_ah_check(struct uroce_device *device, const struct ibv_ah_attr *attr,
		   struct progress_route *route);

/* Why uroce_ah_check() refuses attr, and what to do; "" when it does not. */
void uroce_ah_explain(struct uroce_device *device, const struct ibv_ah_attr *attr,
		      char text[PROGRESS_ERROR_TEXT]);

#endif
