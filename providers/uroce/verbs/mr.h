/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Memory regions.  Their keys are in the process-wide table (key_table.h), whose lock the engine's
 * visits hold: ibv_dereg_mr() waits until no copy is under way.
 */
#ifndef UROCE_VERBS_MR_H
#define UROCE_VERBS_MR_H

#include "key_table.h"
#include "uroce.h"

struct uroce_mr {
	struct verbs_mr base;
	struct key_entry entry; /* L_Key and R_Key are the same key */
	struct uroce_pd *pd;
};

static inline struct uroce_mr *to_uroce_mr(struct ibv_mr *mr)
{
	return (struct uroce_mr *)mr;
}

/*
 * Would length bytes at addr (not 0 bytes) be there for a device that pins them?  Faults the pages
 * in as a pin would.  0, or EFAULT: not mapped, or not writable although writable says so.
 */
int uroce_memory_check(const void *addr, size_t length, bool writable);

#endif
