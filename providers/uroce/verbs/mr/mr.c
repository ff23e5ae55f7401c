/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "mr.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "verbs/abi/ops.h"

_Static_assert((int)ENG_LOCAL_WRITE == IBV_ACCESS_LOCAL_WRITE &&
		       (int)ENG_REMOTE_WRITE == IBV_ACCESS_REMOTE_WRITE &&
		       (int)ENG_REMOTE_READ == IBV_ACCESS_REMOTE_READ &&
		       (int)ENG_REMOTE_ATOMIC == IBV_ACCESS_REMOTE_ATOMIC &&
		       (int)ENG_MW_BIND == IBV_ACCESS_MW_BIND &&
		       (int)ENG_FLUSH_GLOBAL == ABI_ACCESS_FLUSH_GLOBAL &&
		       (int)ENG_FLUSH_PERSISTENT == ABI_ACCESS_FLUSH_PERSISTENT,
	       "the engine's rights are those of verbs");

enum {
	ACCESS_RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | ABI_ACCESS_FLUSH_GLOBAL |
			ABI_ACCESS_FLUSH_PERSISTENT,
	/* Hints of the optional range (relaxed ordering) may be ignored, and are. */
	ACCESS_FLAGS = ACCESS_RIGHTS | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_OPTIONAL_RANGE |
		       IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB,
	/* Flags that a region of the whole address space cannot have. */
	NOT_IMPLICIT = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB | ABI_ACCESS_FLUSH_PERSISTENT,
};

int uroce_mr_check_access(int access)
{
	if (access & ~ACCESS_FLAGS)
		return EINVAL;
	/* ibv_reg_mr(3): remote write access requires local write access. */
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	return 0;
}

/* ibv_reg_mr(3): the whole address space. */
static bool is_implicit(const void *addr, uint64_t length, int access)
{
	return (access & IBV_ACCESS_ON_DEMAND) && !addr && length == SIZE_MAX;
}

/* Returns 0, EINVAL or EFAULT. */
static int check_range(const void *addr, uint64_t length, uint64_t iova, int access)
{
	/* No byte is accessible, so there is no memory to check. */
	if (!length)
		return 0;
	if (is_implicit(addr, length, access))
		return iova || (access & NOT_IMPLICIT) ? EINVAL : 0;
	if (length > UROCE_MAX_MR_BYTES)
		return EINVAL;
	if ((uintptr_t)addr + length - 1 < (uintptr_t)addr || iova + length - 1 < iova)
		return EINVAL;
	if ((access & ABI_ACCESS_FLUSH_PERSISTENT) && !uroce_memory_is_file(addr, length))
		return EINVAL;
	if (access & IBV_ACCESS_ON_DEMAND)
		return 0;
	return uroce_memory_check(addr, length, access & IBV_ACCESS_LOCAL_WRITE);
}

static uint64_t first_address(uint64_t iova, int access)
{
	return access & IBV_ACCESS_ZERO_BASED ? 0 : iova;
}

static enum mkey_type memory_type(int access)
{
	return access & IBV_ACCESS_ON_DEMAND ? MKEY_ODP : MKEY_PINNED;
}

static uint32_t key_access(int access)
{
	return ((uint32_t)access & ACCESS_RIGHTS) | MKEY_LOCAL;
}

struct uroce_mr *uroce_mr_create(struct ibv_pd *ibv_pd, const struct mkey_entry *entry, int access,
				 enum abi_mr_type type)
{
	struct uroce_mr *mr = NULL;
	int error = uroce_object_add(ibv_pd->context, UROCE_OBJECT_MR);

	if (error)
		goto err;
	mr = calloc(1, sizeof(*mr));
	error = ENOMEM;
	if (!mr)
		goto err_remove;
	mr->real = mr;
	mr->pd = to_uroce_pd(ibv_pd);
	mr->entry = *entry;
	mr->entry.access = key_access(access);
	mr->entry.domain = mr->pd->domain;
	error = mkey_table_add(&mr->entry);
	if (error)
		goto err_free;
	uroce_pd_get(mr->pd);
	uroce_import_add(&mr->importable, IMPORT_MR,
			 ibv_pd->context ? to_uroce_context(ibv_pd->context) : NULL);
	mr->base.mr_type = type;
	mr->base.access = access;
	mr->base.ibv_mr.context = ibv_pd->context;
	mr->base.ibv_mr.pd = ibv_pd;
	mr->base.ibv_mr.handle = mr->importable.handle;
	mr->base.ibv_mr.lkey = mr->entry.key;
	mr->base.ibv_mr.rkey = mr->entry.key;
	mr->owner_context = ibv_pd->context;
	uroce_context_hold(mr->owner_context);
	return mr;

err_free:
	free(mr);
err_remove:
	uroce_object_remove(ibv_pd->context, UROCE_OBJECT_MR);
err:
	errno = error;
	return NULL;
}

struct ibv_mr *uroce_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t hca_va,
			    int access)
{
	struct mkey_entry entry = {
		.start = first_address(hca_va, access),
		.length = length,
		.memory = addr,
		.kind = memory_type(access),
	};
	struct uroce_mr *mr;
	int error = uroce_mr_check_access(access);

	if (!error)
		error = check_range(addr, length, entry.start, access);
	if (error) {
		errno = error;
		return NULL;
	}
	mr = uroce_mr_create(pd, &entry, access, ABI_MR_TYPE_MR);
	return mr ? &mr->base.ibv_mr : NULL;
}

struct ibv_mr *uroce_alloc_null_mr(struct ibv_pd *pd)
{
	/* Only for local access: ibv_alloc_null_mr(3). */
	const struct mkey_entry entry = { .length = UINT64_MAX, .kind = MKEY_NULL };
	struct uroce_mr *mr =
		uroce_mr_create(pd, &entry, IBV_ACCESS_LOCAL_WRITE, ABI_MR_TYPE_NULL_MR);

	if (!mr)
		return NULL;
	mr->base.ibv_mr.length = SIZE_MAX;
	mr->base.ibv_mr.rkey = 0;
	return &mr->base.ibv_mr;
}

static struct uroce_mr *mr_of_importable(struct uroce_importable *object)
{
	return container_of(object, struct uroce_mr, importable);
}

struct ibv_mr *uroce_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	struct uroce_importable *object;
	struct uroce_mr *import =
		uroce_import_create(IMPORT_MR, pd->context, handle, sizeof(*import), &object);

	if (!import)
		return NULL;
	import->real = mr_of_importable(object);
	/* addr is NULL: ibv_import_mr(3). */
	import->base = import->real->base;
	import->base.mr_type = ABI_MR_TYPE_IMPORTED_MR;
	import->base.ibv_mr.context = pd->context;
	import->base.ibv_mr.pd = pd;
	import->base.ibv_mr.addr = NULL;
	import->owner_context = pd->context;
	return &import->base.ibv_mr;
}

/* Makes a region inaccessible to peers and requests, and drops its references. */
static int destroy_mr(struct uroce_mr *mr)
{
	int error = mkey_table_remove(&mr->entry);

	if (error)
		return error;
	if (mr->dm)
		atomic_fetch_sub(&mr->dm->users, 1);
	if (mr->mapping.memory)
		munmap(mr->mapping.memory, mr->mapping.bytes);
	uroce_pd_put(mr->pd);
	uroce_object_remove(mr->owner_context, UROCE_OBJECT_MR);
	return 0;
}

/*
 * Frees the application's object, and the storage of the region if it has been deregistered and
 * this was the last reference.
 */
static void put_mr(struct uroce_mr *held)
{
	struct ibv_context *owner_context = held->owner_context;
	struct uroce_mr *mr = held->real;

	if (held != mr)
		free(held);
	if (uroce_import_put(&mr->importable))
		free(mr);
	uroce_context_release(owner_context);
}

void uroce_unimport_mr(struct ibv_mr *ibv_mr)
{
	put_mr((struct uroce_mr *)ibv_mr);
}

int uroce_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		   int access)
{
	struct uroce_mr *mr = to_uroce_mr(&vmr->ibv_mr);
	int new_access = flags & IBV_REREG_MR_CHANGE_ACCESS ? access : mr->base.access;
	struct mkey_entry new_entry = {
		.access = key_access(new_access),
		.start = mr->entry.start,
		.length = mr->entry.length,
		.memory = mr->entry.memory,
		.domain = mr->entry.domain,
		.kind = memory_type(new_access),
	};
	bool zero_based = (mr->base.access | new_access) & IBV_ACCESS_ZERO_BASED;
	int error;

	if (flags & ~(IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD |
		      IBV_REREG_MR_CHANGE_ACCESS))
		return EINVAL;
	if ((flags & IBV_REREG_MR_CHANGE_PD) &&
	    !uroce_contexts_share_file(vmr->ibv_mr.context, pd->context))
		return EINVAL;
	error = uroce_mr_check_access(new_access);
	if (error)
		return error;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		new_entry.memory = addr;
		new_entry.length = length;
		new_entry.start = zero_based ? 0 : (uintptr_t)addr;
	}
	if (flags & IBV_REREG_MR_CHANGE_PD)
		new_entry.domain = to_uroce_pd(pd)->domain;
	/* The memory may be read-only if the region was; check it for the new access. */
	error = check_range(new_entry.memory, new_entry.length, new_entry.start, new_access);
	if (!error)
		error = mkey_table_change(&mr->entry, &new_entry);
	if (error)
		return error;
	mr->base.access = new_access;
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		uroce_pd_get(to_uroce_pd(pd));
		uroce_pd_put(mr->pd);
		mr->pd = to_uroce_pd(pd);
	}
	return 0;
}

int uroce_dereg_mr(struct verbs_mr *vmr)
{
	struct uroce_mr *mr = to_uroce_mr(&vmr->ibv_mr);
	int error;

	/* Deregistered through another import: this one must be unimported, ibv_import_mr(3). */
	if (atomic_exchange(&mr->deregistering, true))
		return EINVAL;
	error = destroy_mr(mr);
	if (error) {
		atomic_store(&mr->deregistering, false);
		return error;
	}
	uroce_import_destroy(&mr->importable);
	put_mr((struct uroce_mr *)vmr);
	return 0;
}
