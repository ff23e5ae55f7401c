/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "verbs/qp/qp.h"

#include <errno.h>
#include <stdlib.h>

#include "mr.h"
#include "verbs/abi/ops.h"

enum {
	REMOTE_WRITE_ACCESS = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
	REMOTE_ACCESS = REMOTE_WRITE_ACCESS | IBV_ACCESS_REMOTE_READ,
	/* The bits of a key that do not change when the window is bound. */
	KEY_INDEX_MASK = ~0xff,
};

struct ibv_mw *uroce_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct uroce_mw *mw = NULL;
	int error = EINVAL;

	if (type == IBV_MW_TYPE_1 || type == IBV_MW_TYPE_2)
		error = uroce_object_add(pd->context, UROCE_OBJECT_MW);
	if (error)
		goto err;
	mw = calloc(1, sizeof(*mw));
	error = ENOMEM;
	if (!mw)
		goto err_remove;
	mw->pd = to_uroce_pd(pd);
	/* An unbound window grants no access. */
	mw->entry.domain = mw->pd->domain;
	error = mkey_table_add_window(&mw->entry);
	if (error)
		goto err_free;
	uroce_pd_get(mw->pd);
	mw->base.context = pd->context;
	mw->base.pd = pd;
	mw->base.rkey = mw->entry.key;
	mw->base.type = type;
	return &mw->base;

err_free:
	free(mw);
err_remove:
	uroce_object_remove(pd->context, UROCE_OBJECT_MW);
err:
	errno = error;
	return NULL;
}

int uroce_dealloc_mw(struct ibv_mw *ibv_mw)
{
	struct uroce_mw *mw = to_uroce_mw(ibv_mw);
	struct ibv_context *context = ibv_mw->context;

	/* Cannot fail: only a region can have windows bound to it. */
	mkey_table_remove(&mw->entry);
	uroce_pd_put(mw->pd);
	free(mw);
	uroce_object_remove(context, UROCE_OBJECT_MW);
	return 0;
}

/*
 * Checks that need not wait until the bind is executed.  Returns 0, EINVAL, or EPERM if mr and mw
 * are of different protection domains.
 */
static int check_bind_info(const struct ibv_mw *mw, const struct ibv_mw_bind_info *info)
{
	/* A window grants no local access; programs request it because the region has it. */
	const unsigned int known = REMOTE_ACCESS | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE;
	const struct uroce_mr *mr;

	if (info->mw_access_flags & ~known)
		return EINVAL;
	/* Only type 1 windows are unbound by a bind of length 0: ibv_alloc_mw(3). */
	if (!info->length && mw->type != IBV_MW_TYPE_1)
		return EINVAL;
	if (!info->mr)
		return info->addr || info->length ? EINVAL : 0;
	mr = to_uroce_mr(info->mr);
	if (mr->base.mr_type == ABI_MR_TYPE_NULL_MR)
		return EINVAL;
	return mr->pd->domain == to_uroce_mw((struct ibv_mw *)mw)->pd->domain ? 0 : EPERM;
}

int uroce_mw_init_wqe(const struct uroce_qp *qp, enum ibv_mw_type type, const struct ibv_mw *mw,
		      uint32_t rkey, const struct ibv_mw_bind_info *info, struct eng_send_wqe *wqe)
{
	int error;

	if (!mw || mw->type != type || qp->type == ENG_UD)
		return EINVAL;
	error = check_bind_info(mw, info);
	if (error)
		return error;
	wqe->op = ENG_BIND_MW;
	wqe->length = 0;
	wqe->sge_count = 0;
	wqe->immediate = 0;
	wqe->bind.addr = info->addr;
	wqe->bind.length = info->length;
	wqe->bind.access = info->mw_access_flags;
	wqe->bind.window = mw->rkey;
	wqe->bind.lkey = info->mr ? info->mr->lkey : 0;
	/* Adapters use only the low byte of rkey; programs may leave the other bits 0. */
	wqe->bind.rkey = (mw->rkey & (uint32_t)KEY_INDEX_MASK) | (rkey & ~(uint32_t)KEY_INDEX_MASK);
	return 0;
}

static struct uroce_mw *find_window(uint32_t key)
{
	struct mkey_entry *entry = mkey_is_window(key) ? mkey_table_find(key) : NULL;

	return entry ? container_of(entry, struct uroce_mw, entry) : NULL;
}

/* Returns the region of bind.lkey if it allows the bind that wqe requests, else NULL. */
static struct mkey_entry *find_bindable_region(const struct uroce_qp *qp,
					       const struct eng_send_wqe *wqe)
{
	struct mkey_entry *region =
		mkey_is_window(wqe->bind.lkey) ? NULL : mkey_table_find(wqe->bind.lkey);
	uint64_t offset;

	if (!region || region->domain != qp->pd->domain || !(region->access & ENG_MW_BIND))
		return NULL;
	if ((wqe->bind.access & REMOTE_WRITE_ACCESS) && !(region->access & ENG_LOCAL_WRITE))
		return NULL;
	offset = wqe->bind.addr - region->start;
	if (offset > region->length || wqe->bind.length > region->length - offset)
		return NULL;
	return region;
}

static void set_binding(struct uroce_mw *mw, struct uroce_qp *qp, const struct eng_send_wqe *wqe,
			struct mkey_entry *region)
{
	struct mkey_entry *entry = &mw->entry;

	entry->access = wqe->bind.access & REMOTE_ACCESS;
	entry->start = wqe->bind.access & IBV_ACCESS_ZERO_BASED ? 0 : wqe->bind.addr;
	entry->length = wqe->bind.length;
	entry->memory = (uint8_t *)((uintptr_t)region->memory + (wqe->bind.addr - region->start));
	entry->kind = region->kind;
	entry->region = region;
	entry->user = mw->base.type == IBV_MW_TYPE_2 ? qp : NULL;
	if (entry->user)
		qp->has_windows = true;
	region->windows++;
}

/* Called between mkey_mw_write_lock() and mkey_mw_write_unlock(). */
static bool bind_window(struct uroce_qp *qp, struct uroce_mw *mw, const struct eng_send_wqe *wqe)
{
	struct mkey_entry *region = NULL;

	/* A type 2 window must be unbound. */
	if (mw->base.type == IBV_MW_TYPE_2 && mw->entry.region)
		return false;
	if (wqe->bind.length) {
		region = find_bindable_region(qp, wqe);
		if (!region)
			return false;
	}
	mkey_table_unbind(&mw->entry);
	mw->entry.key = wqe->bind.rkey;
	if (region)
		set_binding(mw, qp, wqe, region);
	return true;
}

bool uroce_mw_bind(void *owner, const struct eng_send_wqe *wqe)
{
	struct uroce_qp *qp = owner;
	struct uroce_mw *mw = find_window(wqe->bind.window);
	bool ok;

	if (!mw || mw->entry.domain != qp->pd->domain)
		return false;
	mkey_mw_write_lock();
	ok = bind_window(qp, mw, wqe);
	mkey_mw_write_unlock();
	return ok;
}

bool uroce_mw_invalidate(void *owner, uint32_t key)
{
	struct uroce_qp *qp = owner;
	struct uroce_mw *mw = find_window(key);
	bool ok;

	if (!mw || mw->base.type != IBV_MW_TYPE_2)
		return false;
	mkey_mw_write_lock();
	ok = mw->entry.key == key && mw->entry.user == qp;
	if (ok)
		mkey_table_unbind(&mw->entry);
	mkey_mw_write_unlock();
	return ok;
}
