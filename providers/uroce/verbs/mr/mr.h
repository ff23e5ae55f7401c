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

#include <stdbool.h>
#include <stddef.h>

#include "mkey_table.h"
#include "import.h"
#include "verbs/uroce.h"

struct uroce_dm;

/* Mapping of a dma-buf that a region owns.  All zero: none. */
struct uroce_mapping {
	void *memory; /* start of a page */
	size_t bytes;
};

struct uroce_mr {
	struct verbs_mr base;
	struct uroce_mr *real; /* itself, or the object that is imported: to_uroce_mr() */
	struct uroce_importable importable;
	struct mkey_entry entry; /* L_Key and R_Key are the same key */
	struct uroce_pd *pd;
	/* device memory of the region; NULL: memory of the application */
	struct uroce_dm *dm;
	struct uroce_mapping mapping;
	/* context in which it was created, with a reference; NULL in tests */
	struct ibv_context *owner_context;
	atomic_bool deregistering; /* dereg_mr has been called by one of the holders */
};

static inline struct uroce_mr *to_uroce_mr(struct ibv_mr *mr)
{
	return ((struct uroce_mr *)mr)->real;
}

/* Returns 0, or EINVAL if a region cannot have these rights (enum ibv_access_flags). */
int uroce_mr_check_access(int access);

/*
 * Creates a region of pd with the contents of entry, but access, domain and key set from access and
 * pd; returns NULL with errno.  type is the type for libibverbs.
 */
struct uroce_mr *uroce_mr_create(struct ibv_pd *pd, const struct mkey_entry *entry, int access,
				 enum abi_mr_type type);

/* ---- pages.c ---- */

/* State of the application's memory according to the kernel. */

/*
 * Returns 0 if a device could pin length bytes (not 0) at addr, or EFAULT if they are not mapped,
 * or not writable although writable is set.  Faults the pages in as pinning would.
 */
int uroce_memory_check(const void *addr, size_t length, bool writable);

/* Returns true if all of the bytes are in shared mappings of files, so that they can persist. */
bool uroce_memory_is_file(const void *addr, size_t length);

/* Writes the bytes, which are in mappings of files, to the files' storage.  Returns 0 or errno. */
int uroce_memory_sync(const void *addr, size_t length);

/* ---- dm.c ---- */

/*
 * Device memory: memory of this process, limited per device so that the reported size is guaranteed
 * (rule U1).  As with an adapter, the application accesses it by copies of whole words, and
 * requests access it through zero-based regions.
 */

struct uroce_dm {
	struct ibv_dm base;
	struct uroce_dm *real; /* itself, or the object that is imported: to_uroce_dm() */
	struct uroce_importable importable;
	struct uroce_device *device;
	uint8_t *memory;
	size_t length;	   /* bytes */
	atomic_uint users; /* number of memory regions; free_dm returns EBUSY while there are any */
};

static inline struct uroce_dm *to_uroce_dm(struct ibv_dm *dm)
{
	return ((struct uroce_dm *)dm)->real;
}

#endif
