/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Memory regions: entries of the process's key table (key_table.h).  Registration makes sure that
 * the memory is there and may be used as the rights say, as a device that pins memory would;
 * deregistration returns only when no copy is under way.  Regions on demand (ODP) are checked at
 * each use instead, since the application may map and unmap below them as it likes: what is not
 * there fails the request.  (An unmapping at the very moment of a copy is a fault of the process,
 * as with any copy of its own.)
 */
#ifndef UROCE_VERBS_MR_H
#define UROCE_VERBS_MR_H

#include "key_table.h"
#include "pages.h"
#include "verbs/import.h"
#include "verbs/uroce.h"

struct uroce_dm;

struct uroce_mr {
	struct verbs_mr base;
	struct uroce_mr *real; /* itself, or what an import stands for: to_uroce_mr() */
	struct uroce_importable importable;
	struct key_entry entry; /* L_Key and R_Key are the same key */
	struct uroce_pd *pd;
	struct uroce_dm *dm;	    /* whose memory it is; NULL: the application's */
	struct ibv_context *holder; /* that it was made in, which it holds; NULL in tests */
	atomic_bool ending;	    /* one of its holders is deregistering it, or has */
};

static inline struct uroce_mr *to_uroce_mr(struct ibv_mr *mr)
{
	return ((struct uroce_mr *)mr)->real;
}

static inline struct uroce_mr *uroce_mr_of_entry(struct key_entry *entry)
{
	return (struct uroce_mr *)((char *)entry - offsetof(struct uroce_mr, entry));
}

/* Rights that a region of memory of this process can have, as enum ibv_access_flags.  0 or EINVAL.
 */
int uroce_mr_check_access(int access);

/*
 * A region of pd that means what entry says but for access, domain and key, which access and pd
 * say; NULL with errno.  type as libibverbs is to see it.
 */
struct uroce_mr *uroce_mr_create(struct ibv_pd *pd, const struct key_entry *entry, int access,
				 enum abi_mr_type type);

#endif
