/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "mr.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ops.h"

_Static_assert((int)ENG_LOCAL_WRITE == IBV_ACCESS_LOCAL_WRITE &&
		       (int)ENG_REMOTE_WRITE == IBV_ACCESS_REMOTE_WRITE &&
		       (int)ENG_REMOTE_READ == IBV_ACCESS_REMOTE_READ &&
		       (int)ENG_REMOTE_ATOMIC == IBV_ACCESS_REMOTE_ATOMIC &&
		       (int)ENG_MW_BIND == IBV_ACCESS_MW_BIND,
	       "the engine's rights are those of verbs");

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

enum {
	RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND,
	/* Hints of the optional range (relaxed ordering) may be ignored: this device does. */
	ACCEPTED = RIGHTS | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_OPTIONAL_RANGE,
	UNSUPPORTED = IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB,
};

/* Kernels before 5.14 cannot populate: at least find out what is not mapped. */
static int check_mapped(uintptr_t start, size_t bytes, size_t page)
{
	unsigned char state[512];

	while (bytes) {
		size_t step = bytes < sizeof(state) * page ? bytes : sizeof(state) * page;

		if (mincore((void *)start, step, state))
			return EFAULT;
		start += step;
		bytes -= step;
	}
	return 0;
}

int uroce_memory_check(const void *addr, size_t length, bool writable)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)addr & ~(page - 1);
	size_t bytes = ((uintptr_t)addr + length - start + page - 1) & ~(page - 1);
	int advice = writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
	int result;

	/* Of no bytes at all it asks whether the kernel knows the advice. */
	if (madvise((void *)start, 0, advice))
		return check_mapped(start, bytes, page);
	do
		result = madvise((void *)start, bytes, advice);
	while (result && (errno == EINTR || errno == EAGAIN));
	/* A hole is ENOMEM, a missing right or memory of a device EINVAL: a pin fails alike. */
	return result ? EFAULT : 0;
}

/* 0 or EINVAL, EOPNOTSUPP. */
static int check_access(int access)
{
	if (access & UNSUPPORTED)
		return EOPNOTSUPP;
	if (access & ~ACCEPTED)
		return EINVAL;
	/* ibv_reg_mr(3): who lets the peer write must let the device write. */
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	return 0;
}

/* 0 or EINVAL, EFAULT. */
static int check_range(const void *addr, uint64_t length, uint64_t iova, int access)
{
	/* A region without a byte names no memory; the kernel refuses to pin one, too. */
	if (!length)
		return EINVAL;
	if ((uintptr_t)addr + length - 1 < (uintptr_t)addr || iova + length - 1 < iova)
		return EINVAL;
	return uroce_memory_check(addr, length, access & IBV_ACCESS_LOCAL_WRITE);
}

static uint64_t start_of(uint64_t iova, int access)
{
	return access & IBV_ACCESS_ZERO_BASED ? 0 : iova;
}

struct ibv_mr *uroce_reg_mr(struct ibv_pd *ibv_pd, void *addr, size_t length, uint64_t hca_va,
			    int access)
{
	uint64_t start = start_of(hca_va, access);
	struct uroce_mr *mr;
	int error = check_access(access);

	if (!error)
		error = check_range(addr, length, start, access);
	if (error)
		goto err;
	mr = calloc(1, sizeof(*mr));
	if (!mr) {
		error = ENOMEM;
		goto err;
	}
	mr->pd = to_uroce_pd(ibv_pd);
	mr->entry = (struct key_entry){
		.access = (uint32_t)access & RIGHTS,
		.start = start,
		.length = length,
		.memory = addr,
		.domain = mr->pd->domain,
	};
	error = key_table_count() < UROCE_MAX_MR ? key_table_add(&mr->entry) : ENOMEM;
	if (error)
		goto err_free;
	atomic_fetch_add(&mr->pd->users, 1);
	mr->base.mr_type = ABI_MR_TYPE_MR;
	mr->base.access = access;
	mr->base.ibv_mr.lkey = mr->entry.key;
	mr->base.ibv_mr.rkey = mr->entry.key;
	return &mr->base.ibv_mr;

err_free:
	free(mr);
err:
	errno = error;
	return NULL;
}

int uroce_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		   int access)
{
	struct uroce_mr *mr = to_uroce_mr(&vmr->ibv_mr);
	struct key_entry meaning = mr->entry;
	int new_access = flags & IBV_REREG_MR_CHANGE_ACCESS ? access : vmr->access;
	bool zero_based = (vmr->access | new_access) & IBV_ACCESS_ZERO_BASED;
	int error;

	if (flags & ~(IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD |
		      IBV_REREG_MR_CHANGE_ACCESS))
		return EINVAL;
	error = check_access(new_access);
	if (error)
		return error;
	meaning.access = (uint32_t)new_access & RIGHTS;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		meaning.memory = addr;
		meaning.length = length;
		meaning.start = zero_based ? 0 : (uintptr_t)addr;
	}
	if (flags & IBV_REREG_MR_CHANGE_PD)
		meaning.domain = to_uroce_pd(pd)->domain;
	/* Memory that was only read before may be read-only. */
	error = check_range(meaning.memory, meaning.length, meaning.start, new_access);
	if (error)
		return error;

	key_table_change(&mr->entry, &meaning);
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		atomic_fetch_add(&to_uroce_pd(pd)->users, 1);
		atomic_fetch_sub(&mr->pd->users, 1);
		mr->pd = to_uroce_pd(pd);
	}
	return 0;
}

int uroce_dereg_mr(struct verbs_mr *vmr)
{
	struct uroce_mr *mr = to_uroce_mr(&vmr->ibv_mr);

	key_table_remove(&mr->entry);
	atomic_fetch_sub(&mr->pd->users, 1);
	free(mr);
	return 0;
}
