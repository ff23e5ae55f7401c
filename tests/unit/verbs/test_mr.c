/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Memory registration: arguments that are refused and their errno, access by a key, and the count
 * of users of a protection domain.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verbs/mr/mr.h"

/*
 * Not declared by ops.h, whose weak declarations do not make the linker extract objects from a
 * library.
 */
#define STRONG(name) extern __typeof__(*((struct abi_ops *)0)->name) uroce_##name;
STRONG(alloc_pd)
STRONG(dealloc_pd)
STRONG(reg_mr)
STRONG(reg_mr_ex)
STRONG(rereg_mr)
STRONG(dereg_mr)

static struct ibv_pd *pd, *other_pd;
static uint8_t buffer[8192];

static int set_up(void **state)
{
	(void)state;
	pd = uroce_alloc_pd(NULL);
	other_pd = uroce_alloc_pd(NULL);
	return pd && other_pd ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	return uroce_dealloc_pd(pd) | uroce_dealloc_pd(other_pd);
}

static int reg_errno(void *addr, size_t length, uint64_t iova, int access)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = uroce_reg_mr(pd, addr, length, iova, access);
	if (!mr)
		return errno;
	assert_int_equal(uroce_dereg_mr((struct verbs_mr *)mr), 0);
	return 0;
}

static int reg(void *addr, size_t length, int access)
{
	return reg_errno(addr, length, (uintptr_t)addr, access);
}

static void *map(const struct ibv_pd *domain, uint32_t key, uint64_t addr, uint32_t length,
		 uint32_t need)
{
	struct mkey_cache cache = { 0 };
	void *found;

	mkey_read_lock(0);
	found = mkey_table_map(&cache, domain, key, addr, length, need);
	mkey_read_unlock(0);
	return found;
}

static void access_flags(void **state)
{
	(void)state;
	assert_int_equal(reg(buffer, 100, 0), 0);
	assert_int_equal(reg(buffer, 100, IBV_ACCESS_REMOTE_READ), 0);
	assert_int_equal(reg(buffer, 100,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
				     IBV_ACCESS_MW_BIND),
			 0);
	assert_int_equal(reg(buffer, 100, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	assert_int_equal(reg(buffer, 100, IBV_ACCESS_REMOTE_ATOMIC), EINVAL);
	assert_int_equal(reg(buffer, 100, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING), 0);
	assert_int_equal(reg(buffer, 100, IBV_ACCESS_LOCAL_WRITE | 1 << 25), 0);
	assert_int_equal(reg(buffer, 100, IBV_ACCESS_LOCAL_WRITE | 1 << 12), EINVAL);
	assert_int_equal(reg(buffer, 100, IBV_ACCESS_ON_DEMAND), 0);
	assert_int_equal(reg(buffer, 100, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_HUGETLB), 0);
}

static void ranges(void **state)
{
	(void)state;
	assert_int_equal(reg(buffer, 0, IBV_ACCESS_LOCAL_WRITE), 0);
	assert_int_equal(reg(NULL, 0, 0), 0);
	assert_int_equal(reg((void *)UINTPTR_MAX, 0, 0), 0);
	assert_int_equal(reg(buffer, SIZE_MAX, 0), EINVAL);
	assert_int_equal(reg((void *)(UINTPTR_MAX - 10), 20, 0), EINVAL);
	assert_int_equal(reg_errno(buffer, 100, UINT64_MAX - 50, 0), EINVAL);
	assert_int_equal(reg_errno(buffer, 100, UINT64_MAX - 99, 0), 0);
	assert_int_equal(reg(NULL, 100, 0), EFAULT);
	assert_int_equal(reg(buffer + 1, 1, IBV_ACCESS_LOCAL_WRITE), 0);
}

static void memory_that_cannot_be_pinned(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *three =
		mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(three, MAP_FAILED);
	assert_int_equal(reg(three, 3 * page, IBV_ACCESS_LOCAL_WRITE), 0);
	/* Read-only memory can be sent from, but not received into. */
	assert_int_equal(mprotect(three + page, page, PROT_READ), 0);
	assert_int_equal(reg(three, 3 * page, 0), 0);
	assert_int_equal(reg(three, 3 * page, IBV_ACCESS_LOCAL_WRITE), EFAULT);
	assert_int_equal(reg(three, page, IBV_ACCESS_LOCAL_WRITE), 0);
	assert_int_equal(mprotect(three + page, page, PROT_NONE), 0);
	assert_int_equal(reg(three, 3 * page, 0), EFAULT);
	/* An unmapped page in the middle, and ranges with one byte in it. */
	assert_int_equal(munmap(three + page, page), 0);
	assert_int_equal(reg(three, 3 * page, 0), EFAULT);
	assert_int_equal(reg(three, page + 1, 0), EFAULT);
	assert_int_equal(reg(three + 2 * page - 1, 2, 0), EFAULT);
	assert_int_equal(reg(three, page, 0), 0);
	munmap(three, page);
	munmap(three + 2 * page, page);
}

static void a_key_names_the_memory(void **state)
{
	struct ibv_mr *mr = uroce_reg_mr(pd, buffer + 100, 1000, 0x7000,
					 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct ibv_mr *zero =
		uroce_reg_mr(pd, buffer, 1000, (uintptr_t)buffer, IBV_ACCESS_ZERO_BASED);
	uint32_t key;

	(void)state;
	assert_non_null(mr);
	assert_non_null(zero);
	assert_int_equal(mr->lkey, mr->rkey);
	assert_int_not_equal(mr->lkey, zero->lkey);
	assert_ptr_equal(map(pd, mr->rkey, 0x7000 + 999, 1, ENG_REMOTE_WRITE), buffer + 1099);
	assert_null(map(pd, mr->rkey, (uintptr_t)buffer + 100, 1, 0));
	assert_null(map(pd, mr->rkey, 0x7000, 1, ENG_REMOTE_READ));
	assert_null(map(other_pd, mr->rkey, 0x7000, 1, 0));
	assert_ptr_equal(map(pd, zero->lkey, 5, 10, 0), buffer + 5);
	key = mr->lkey;
	assert_int_equal(uroce_dereg_mr((struct verbs_mr *)mr), 0);
	assert_null(map(pd, key, 0x7000, 1, 0));
	assert_int_equal(uroce_dereg_mr((struct verbs_mr *)zero), 0);
}

static void rereg(void **state)
{
	struct ibv_mr *mr = uroce_reg_mr(pd, buffer, 100, (uintptr_t)buffer, 0);
	struct verbs_mr *vmr = (struct verbs_mr *)mr;

	(void)state;
	assert_non_null(mr);
	assert_int_equal(uroce_rereg_mr(vmr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
					IBV_ACCESS_REMOTE_WRITE),
			 EINVAL);
	assert_int_equal(uroce_rereg_mr(vmr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, NULL, 10, 0),
			 EFAULT);
	/* The refused call has changed nothing. */
	assert_ptr_equal(map(pd, mr->lkey, (uintptr_t)buffer, 100, 0), buffer);

	assert_int_equal(uroce_rereg_mr(vmr,
					IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD |
						IBV_REREG_MR_CHANGE_ACCESS,
					other_pd, buffer + 200, 50, IBV_ACCESS_LOCAL_WRITE),
			 0);
	assert_null(map(pd, mr->lkey, (uintptr_t)buffer + 200, 50, 0));
	assert_null(map(other_pd, mr->lkey, (uintptr_t)buffer, 50, 0));
	assert_ptr_equal(map(other_pd, mr->lkey, (uintptr_t)buffer + 200, 50, ENG_LOCAL_WRITE),
			 buffer + 200);
	assert_int_equal(uroce_dealloc_pd(other_pd), EBUSY);
	assert_int_equal(uroce_dereg_mr(vmr), 0);
}

static void a_domain_in_use_stays(void **state)
{
	struct ibv_pd *used = uroce_alloc_pd(NULL);
	struct ibv_mr *mr = uroce_reg_mr(used, buffer, 100, 0, 0);

	(void)state;
	assert_int_equal(uroce_dealloc_pd(used), EBUSY);
	assert_int_equal(uroce_dereg_mr((struct verbs_mr *)mr), 0);
	assert_int_equal(uroce_dealloc_pd(used), 0);
}

/* Parameters of ibv_reg_mr_ex(); a program's header may define more of them than ours. */
static void a_structure_says_the_same(void **state)
{
	const int access = IBV_ACCESS_LOCAL_WRITE;
	static const uint64_t unknown[] = { 1 << 4, 1 << 5, UINT64_C(1) << 63 };
	/* A dma-buf requires a descriptor, an offset and an IOVA, and no other address. */
	static const uint64_t incomplete[] = {
		0,
		ABI_MR_INIT_IOVA,
		ABI_MR_INIT_FD,
		ABI_MR_INIT_FD | ABI_MR_INIT_IOVA,
		ABI_MR_INIT_FD | ABI_MR_INIT_FD_OFFSET,
		ABI_MR_INIT_ADDR | ABI_MR_INIT_FD_OFFSET,
		ABI_MR_INIT_ALL,
	};
	struct abi_mr_init_attr attr = { .length = 100, .access = access, .addr = buffer };
	struct ibv_mr_init_attr *init_attr = (void *)&attr;
	struct ibv_mr *mr;

	(void)state;
	for (size_t i = 0; i < sizeof(incomplete) / sizeof(incomplete[0]); i++) {
		attr.comp_mask = incomplete[i];
		assert_null(uroce_reg_mr_ex(pd, init_attr));
		assert_int_equal(errno, EINVAL);
	}
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		attr.comp_mask = ABI_MR_INIT_ADDR | unknown[i];
		assert_null(uroce_reg_mr_ex(pd, init_attr));
		assert_int_equal(errno, EOPNOTSUPP);
	}
	attr.iova = 0x5000;
	attr.comp_mask = ABI_MR_INIT_ADDR;
	mr = uroce_reg_mr_ex(pd, init_attr);
	assert_non_null(mr);
	assert_ptr_equal(map(pd, mr->lkey, (uintptr_t)buffer, 100, access), buffer);
	assert_int_equal(uroce_dereg_mr((struct verbs_mr *)mr), 0);
	attr.comp_mask |= ABI_MR_INIT_IOVA;
	mr = uroce_reg_mr_ex(pd, init_attr);
	assert_non_null(mr);
	assert_ptr_equal(map(pd, mr->lkey, 0x5000, 100, access), buffer);
	assert_null(map(pd, mr->lkey, (uintptr_t)buffer, 100, access));
	assert_int_equal(uroce_dereg_mr((struct verbs_mr *)mr), 0);
}

static void a_structure_with_a_descriptor(void **state)
{
	struct abi_mr_init_attr attr = {
		.length = 100,
		.comp_mask = ABI_MR_INIT_FD | ABI_MR_INIT_FD_OFFSET | ABI_MR_INIT_IOVA,
		.iova = 0x5008,
		.fd = memfd_create("test", 0),
		.fd_offset = 4096 + 8,
	};
	struct ibv_mr *mr;
	const char *memory;

	(void)state;
	assert_int_equal(ftruncate(attr.fd, 8192), 0);
	assert_int_equal(pwrite(attr.fd, "x", 1, 4096 + 8 + 99), 1);
	mr = uroce_reg_mr_ex(pd, (struct ibv_mr_init_attr *)&attr);
	close(attr.fd);
	assert_non_null(mr);
	memory = map(pd, mr->lkey, 0x5008, 100, 0);
	assert_non_null(memory);
	assert_int_equal(memory[99], 'x');
	assert_int_equal(uroce_dereg_mr((struct verbs_mr *)mr), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(access_flags),
		cmocka_unit_test(a_structure_says_the_same),
		cmocka_unit_test(a_structure_with_a_descriptor),
		cmocka_unit_test(ranges),
		cmocka_unit_test(memory_that_cannot_be_pinned),
		cmocka_unit_test(a_key_names_the_memory),
		cmocka_unit_test(rereg),
		cmocka_unit_test(a_domain_in_use_stays),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
