/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Device memory: memory of this process, limited per device so that the reported size is guaranteed
 * (rule U1).  As with an adapter, the application accesses it by copies of whole words, and
 * requests access it through zero-based regions.
 */
#ifndef UROCE_VERBS_DM_H
#define UROCE_VERBS_DM_H

#include "import.h"
#include "verbs/uroce.h"

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
