/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Address handles, and the address vectors that ibv_modify_qp() and ibv_create_ah() accept. */
#ifndef UROCE_VERBS_AH_H
#define UROCE_VERBS_AH_H

#include "progress/path/ud_path.h"
#include "verbs/uroce.h"

/*
 * Exists after ibv_destroy_ah() while send requests refer to it.  The last reference may be dropped
 * under locks that do not allow closing the path; the next control call without locks does that.
 */
struct uroce_ah {
	struct ibv_ah base;
	struct ibv_ah_attr attr;
	struct uroce_pd *pd;	   /* invalid after ibv_destroy_ah() */
	struct progress *progress; /* constant */
	unsigned int generation;   /* fork.h */
	struct progress_path path; /* constant */
	struct uroce_ctx_obj ctx_obj;
	atomic_uint users; /* number of references: one of the application, one for each request */
	struct uroce_ah *next_deferred;
};

static inline struct uroce_ah *to_uroce_ah(struct ibv_ah *ah)
{
	return (struct uroce_ah *)ah;
}

/* Take and drop a reference.  Any thread, with any locks held. */
void uroce_ah_hold(struct uroce_ah *ah);
void uroce_ah_release(struct uroce_ah *ah);
/* Frees the handles without references.  Control call: no locks held. */
void uroce_ah_free_deferred(void);

/*
 * Returns 0 if attr is a path that the device can use: port 1, a global route (RoCE has no other),
 * the index of a GID, and a destination GID of the same IP version; else EINVAL.  Fills route,
 * which may be NULL, except its dest_qpn.
 */
int uroce_ah_check(struct uroce_device *device, const struct ibv_ah_attr *attr,
		   struct progress_route *route);

/* Writes why uroce_ah_check() refuses attr, and the remedy, into text; "" if it does not. */
void uroce_ah_strerror(struct uroce_device *device, const struct ibv_ah_attr *attr,
		       char text[PROGRESS_ERROR_TEXT]);

#endif
