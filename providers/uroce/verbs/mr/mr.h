/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Memory regions: entries of the process's key table (mkey_table.h).  Registration checks that the
 * memory exists and permits the access rights, as a device that pins memory would; deregistration
 * returns only when no copy is in progress.  ODP regions are checked at each use instead, because
 * the application may map and unmap their memory at any time: a request to unmapped memory fails.
 * (Unmapping during a copy is an error of the process, as during a memcpy().)
 */
#ifndef UROCE_VERBS_MR_H
#define UROCE_VERBS_MR_H

#include "mkey_table.h"
#include "pages.h"
#include "import.h"
#include "verbs/uroce.h"

struct uroce_dm;

struct uroce_mr {
	struct verbs_mr base;
	struct uroce_mr *real; /* itself, or the object that is imported: to_uroce_mr() */
	struct uroce_importable importable;
	struct mkey_entry entry; /* L_Key and R_Key are the same key */
	struct uroce_pd *pd;
	/* device memory of the region; NULL: memory of the application */
	struct uroce_dm *dm;
	/* context in which it was created, with a reference; NULL in tests */
	struct ibv_context *owner_context;
	atomic_bool deregistering; /* dereg_mr has been called by one of the holders */
};

static inline struct uroce_mr *to_uroce_mr(struct ibv_mr *mr)
{
	return ((struct uroce_mr *)mr)->real;
}

static inline struct uroce_mr *uroce_mr_of_entry(struct mkey_entry *entry)
{
	return container_of(entry, struct uroce_mr, entry);
}

/* Returns 0, or EINVAL if a region cannot have these rights (enum ibv_access_flags). */
int uroce_mr_check_access(int access);

/*
 * Creates a region of pd with the contents of entry, but access, domain and key set from access and
 * pd; returns NULL with errno.  type is the type for libibverbs.
 */
struct uroce_mr *uroce_mr_create(struct ibv_pd *pd, const struct mkey_entry *entry, int access,
				 enum abi_mr_type type);

#endif
