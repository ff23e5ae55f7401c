/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * ibv_advise_mr(): faults in pages of ODP regions before they are used.  The call does so before it
 * returns, so IBV_ADVISE_MR_FLAG_FLUSH has no further effect.
 */
#include <errno.h>

#include "mr.h"
#include "verbs/abi/ops.h"

/* Memory of an element of the list. */
struct range {
	uint8_t *memory;
	bool writable;
};

/* Returns 0 or the errno of ibv_advise_mr(3).  Called inside a visit of the key table. */
static int find_range(const struct uroce_pd *pd, const struct ibv_sge *sge, struct range *range)
{
	const struct mkey_entry *entry;
	uint64_t offset;

	/* Memory windows are not regions. */
	if (mkey_is_window(sge->lkey))
		return EINVAL;
	entry = mkey_table_find(sge->lkey);
	if (!entry)
		return EFAULT;
	if (entry->domain != pd->domain)
		return EPERM;
	if (entry->kind != MKEY_ODP)
		return EINVAL;
	offset = sge->addr - entry->start;
	if (offset > entry->length || sge->length > entry->length - offset)
		return EFAULT;
	range->memory = (uint8_t *)((uintptr_t)entry->memory + offset);
	range->writable = entry->access & ENG_LOCAL_WRITE;
	return 0;
}

static int advise_range(const struct uroce_pd *pd, enum ibv_advise_mr_advice advice,
			const struct ibv_sge *sge)
{
	bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	struct range range;
	int error;

	mkey_read_lock(0);
	error = find_range(pd, sge, &range);
	mkey_read_unlock(0);
	if (error)
		return error;
	if (write && !range.writable)
		return EPERM;
	/*
	 * NO_FAULT fills the device's page tables from pages that are present.  This device uses
	 * the processor's.
	 */
	if (!sge->length || advice == IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return 0;
	return uroce_memory_check(range.memory, sge->length, write);
}

int uroce_advise_mr(struct ibv_pd *ibv_pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		    struct ibv_sge *list, uint32_t count)
{
	const struct uroce_pd *pd = to_uroce_pd(ibv_pd);
	int error = 0;

	if (advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return EOPNOTSUPP;
	if ((flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH) || !count || !list)
		return EINVAL;
	for (uint32_t i = 0; i < count && !error; i++)
		error = advise_range(pd, advice, &list[i]);
	return error;
}
