/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "mr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/abi/api_call.h"
#include "verbs/abi/ops.h"

enum {
	WORD = 4, /* bytes; unit of copies */
	LOG_MIN_ALIGNMENT = 6,
	LOG_MAX_ALIGNMENT = 12,
};

/* Returns 0, EINVAL if not in whole words, or EFAULT if out of bounds. */
static int check_copy(const struct uroce_dm *dm, uint64_t offset, size_t length)
{
	if (offset % WORD || length % WORD)
		return EINVAL;
	return offset > dm->length || length > dm->length - offset ? EFAULT : 0;
}

static int copy_into_dm(struct ibv_dm *ibv_dm, uint64_t offset, const void *from, size_t length)
{
	struct uroce_dm *dm = to_uroce_dm(ibv_dm);
	int error = check_copy(dm, offset, length);

	if (!error)
		memcpy(dm->memory + offset, from, length);
	return error;
}

static int copy_out_of_dm(void *to, struct ibv_dm *ibv_dm, uint64_t offset, size_t length)
{
	struct uroce_dm *dm = to_uroce_dm(ibv_dm);
	int error = check_copy(dm, offset, length);

	if (!error)
		memcpy(to, dm->memory + offset, length);
	return error;
}

static int copy_to_dm(struct ibv_dm *dm, uint64_t offset, const void *from, size_t length)
{
	return UROCE_SET_ERRNO(copy_into_dm(dm, offset, from, length));
}

static int copy_from_dm(void *to, struct ibv_dm *dm, uint64_t offset, size_t length)
{
	return UROCE_SET_ERRNO(copy_out_of_dm(to, dm, offset, length));
}

/* Allocates from the device's total (rule U1). */
static int reserve_dm(struct uroce_device *device, size_t length)
{
	if (atomic_fetch_add(&device->dm_used, length) + length <= UROCE_MAX_DM)
		return 0;
	atomic_fetch_sub(&device->dm_used, length);
	return ENOMEM;
}

static struct uroce_dm *alloc_dm_memory(const struct ibv_alloc_dm_attr *attr)
{
	size_t alignment = (size_t)1 << (attr->log_align_req > LOG_MIN_ALIGNMENT
						 ? attr->log_align_req
						 : (uint32_t)LOG_MIN_ALIGNMENT);
	size_t bytes = (attr->length + alignment - 1) & ~(alignment - 1);
	struct uroce_dm *dm = calloc(1, sizeof(*dm));

	if (!dm)
		return NULL;
	dm->memory = aligned_alloc(alignment, bytes);
	if (!dm->memory) {
		free(dm);
		return NULL;
	}
	memset(dm->memory, 0, bytes);
	dm->length = attr->length;
	return dm;
}

struct ibv_dm *uroce_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	struct uroce_device *device = to_uroce_context(context)->device;
	struct uroce_dm *dm;
	int error = 0;

	if (attr->comp_mask || !attr->length || attr->length > UROCE_MAX_DM ||
	    attr->log_align_req > LOG_MAX_ALIGNMENT)
		error = EINVAL;
	if (!error)
		error = reserve_dm(device, attr->length);
	if (error)
		goto err;
	dm = alloc_dm_memory(attr);
	error = ENOMEM;
	if (!dm)
		goto err_unreserve;
	dm->real = dm;
	dm->device = device;
	atomic_init(&dm->users, 0);
	uroce_import_add(&dm->importable, IMPORT_DM, to_uroce_context(context));
	dm->base.context = context;
	dm->base.memcpy_to_dm = copy_to_dm;
	dm->base.memcpy_from_dm = copy_from_dm;
	dm->base.handle = dm->importable.handle;
	uroce_context_hold(context);
	return &dm->base;

err_unreserve:
	atomic_fetch_sub(&device->dm_used, attr->length);
err:
	errno = error;
	return NULL;
}

static struct uroce_dm *dm_of_importable(struct uroce_importable *object)
{
	return container_of(object, struct uroce_dm, importable);
}

struct ibv_dm *uroce_import_dm(struct ibv_context *context, uint32_t handle)
{
	struct uroce_importable *object;
	struct uroce_dm *import =
		uroce_import_create(IMPORT_DM, context, handle, sizeof(*import), &object);

	if (!import)
		return NULL;
	import->real = dm_of_importable(object);
	import->base = import->real->base;
	import->base.context = context;
	return &import->base;
}

/* Frees the application's object, and the memory with the last reference if it was freed. */
static void put_dm(struct uroce_dm *held)
{
	struct ibv_context *context = held->base.context;
	struct uroce_dm *dm = held->real;

	if (held != dm)
		free(held);
	if (uroce_import_put(&dm->importable)) {
		atomic_fetch_sub(&dm->device->dm_used, dm->length);
		free(dm->memory);
		free(dm);
	}
	uroce_context_release(context);
}

void uroce_unimport_dm(struct ibv_dm *ibv_dm)
{
	put_dm((struct uroce_dm *)ibv_dm);
}

int uroce_free_dm(struct ibv_dm *ibv_dm)
{
	struct uroce_dm *dm = to_uroce_dm(ibv_dm);

	if (atomic_load(&dm->users))
		return EBUSY;
	/* Freed through another import: this one must be unimported, ibv_import_dm(3). */
	if (!uroce_import_destroy(&dm->importable))
		return EINVAL;
	put_dm((struct uroce_dm *)ibv_dm);
	return 0;
}

static int check_region(const struct uroce_dm *dm, uint64_t offset, size_t length,
			unsigned int access)
{
	/* ibv_alloc_dm(3): memory regions of device memory are always zero-based. */
	if (!(access & IBV_ACCESS_ZERO_BASED) ||
	    (access & (IBV_ACCESS_ON_DEMAND | ABI_ACCESS_FLUSH_PERSISTENT)))
		return EINVAL;
	/* Length 0 is valid: there is no memory to check. */
	if (offset > dm->length || length > dm->length - offset)
		return EINVAL;
	return uroce_mr_check_access((int)access);
}

struct ibv_mr *uroce_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibv_dm, uint64_t offset,
			       size_t length, unsigned int access)
{
	struct uroce_dm *dm = to_uroce_dm(ibv_dm);
	int error = check_region(dm, offset, length, access);
	struct uroce_mr *mr;

	/* After a free through another import, this one cannot be used for regions any more. */
	if (!uroce_contexts_share_file(pd->context, ibv_dm->context) ||
	    uroce_import_is_destroyed(&dm->importable))
		error = EINVAL;
	if (error) {
		errno = error;
		return NULL;
	}
	/*
	 * libibverbs excludes the memory of plain regions, by their address, from copying in
	 * fork(); this region has no address, and cannot be reregistered.  Another type avoids
	 * both.
	 */
	mr = uroce_mr_create(pd,
			     &(struct mkey_entry){
				     .length = length,
				     .memory = dm->memory + offset,
				     .kind = MKEY_PINNED,
			     },
			     (int)access, ABI_MR_TYPE_DMABUF_MR);
	if (!mr)
		return NULL;
	mr->dm = dm;
	atomic_fetch_add(&dm->users, 1);
	mr->base.ibv_mr.length = length;
	return &mr->base.ibv_mr;
}
