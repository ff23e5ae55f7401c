/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Device memory: memory of this process, whose size per device is limited so that what the device
 * reports is a number that it keeps (rule U1).  The application reaches it by copies of whole
 * words, as with an adapter's, and requests by regions that count from 0.
 */
#ifndef UROCE_VERBS_DM_H
#define UROCE_VERBS_DM_H

#include "verbs/import.h"
#include "verbs/uroce.h"

struct uroce_dm {
	struct ibv_dm base;
	struct uroce_dm *real; /* itself, or what an import stands for: to_uroce_dm() */
	struct uroce_importable importable;
	struct uroce_device *device;
	uint8_t *memory;
	size_t length;	   /* bytes */
	atomic_uint users; /* regions: free answers EBUSY while any is left */
};

static inline struct uroce_dm *to_uroce_dm(struct ibv_dm *dm)
{
	return ((struct uroce_dm *)dm)->real;
}

/* A region of dm is gone. */
void uroce_dm_put(struct uroce_dm *dm);

#endif
