/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Memory that a test maps by itself, and regions of it.  As in verbs_pair.h, a failing call fails
 * the current test.
 */
#ifndef UROCE_TESTS_VERBS_MEMORY_H
#define UROCE_TESTS_VERBS_MEMORY_H

#include <sys/mman.h>

#include "verbs_pair.h"

enum {
	ON_DEMAND = ALL_ACCESS | IBV_ACCESS_ON_DEMAND,
	PAGE = 4096,
};

/* Maps this number of untouched pages; the caller unmaps them. */
static inline uint8_t *map_pages(size_t count)
{
	uint8_t *memory = mmap(NULL, count * PAGE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	return memory;
}

/* Like ibv_reg_mr(); the caller deregisters the region. */
static inline struct ibv_mr *reg(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, addr, length, access);

	assert_non_null(mr);
	return mr;
}

static inline struct ibv_sge in(const struct ibv_mr *mr, uint64_t addr, uint32_t length)
{
	return (struct ibv_sge){ addr, length, mr->lkey };
}

#endif
