/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Regions on demand: memory that is mapped or unmapped after the registration, regions of the whole
 * address space, and ibv_advise_mr().
 */
#include "verbs_memory.h"

#include <stdbool.h>

static struct pair pair;

static void every_operation_on_demand(void **state)
{
	struct ibv_qp_ex *ex;
	uint8_t *memory;
	struct ibv_mr *mr;

	(void)state;
	pair_open(&pair, &(struct pair_options){ .send_ops = IBV_QP_EX_WITH_ATOMIC_WRITE });
	ex = ibv_qp_to_qp_ex(pair.a.qp);
	memory = map_pages(16);
	mr = reg(pair.b.pd, memory, 16 * PAGE, ON_DEMAND);
	memset(pair.a.buffer, 0x41, 16 * PAGE);
	/* Pages that have not been touched yet. */
	post_sge(&pair.a, IBV_WR_RDMA_WRITE, 1, sge_of(&pair.a, 0, 3 * PAGE), mr->rkey,
		 (uintptr_t)memory + 100);
	expect_wc(&pair.a, 1, IBV_WC_SUCCESS);
	assert_memory_equal(memory + 100, pair.a.buffer, 3 * PAGE);
	post_sge(&pair.a, IBV_WR_RDMA_READ, 2, sge_of(&pair.a, 0, 2 * PAGE), mr->rkey,
		 (uintptr_t)memory + 8 * PAGE);
	expect_wc(&pair.a, 2, IBV_WC_SUCCESS);
	assert_int_equal(pair.a.buffer[2 * PAGE - 1], 0);
	post_sge(&pair.a, IBV_WR_ATOMIC_FETCH_AND_ADD, 3, sge_of(&pair.a, 0, 8), mr->rkey,
		 (uintptr_t)memory + 12 * PAGE);
	expect_wc(&pair.a, 3, IBV_WC_SUCCESS);
	assert_int_equal(memory[12 * PAGE], 3);
	ibv_wr_start(ex);
	ex->wr_id = 7, ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_write(ex, mr->rkey, (uintptr_t)memory + 13 * PAGE, "eight by");
	assert_int_equal(ibv_wr_complete(ex), 0);
	expect_wc(&pair.a, 7, IBV_WC_SUCCESS);
	assert_memory_equal(memory + 13 * PAGE, "eight by", 8);
	receive_sge(&pair.b, 4, in(mr, (uintptr_t)memory + 14 * PAGE, PAGE));
	post_sge(&pair.a, IBV_WR_SEND, 5, sge_of(&pair.a, 3 * PAGE, 500), 0, 0);
	expect_wc(&pair.a, 5, IBV_WC_SUCCESS);
	expect_wc(&pair.b, 4, IBV_WC_SUCCESS);
	assert_int_equal(memory[14 * PAGE + 499], 0x41);
	/* A WRITE from the region. */
	post_sge(&pair.b, IBV_WR_RDMA_WRITE, 6, in(mr, (uintptr_t)memory, 4 * PAGE),
		 pair.a.mr->rkey, (uintptr_t)pair.a.buffer);
	expect_wc(&pair.b, 6, IBV_WC_SUCCESS);
	assert_memory_equal(memory, pair.a.buffer, 4 * PAGE);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	munmap(memory, 16 * PAGE);
	pair_close(&pair);
}

/* Missing or write-protected pages fail the request and not the process. */
static void memory_on_demand_that_is_not_there(void **state)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		int protection; /* -1: unmapped */
		enum ibv_wc_status status;
	} rows[] = {
		{ IBV_WR_RDMA_WRITE, -1, IBV_WC_REM_ACCESS_ERR },
		{ IBV_WR_RDMA_READ, -1, IBV_WC_REM_ACCESS_ERR },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, -1, IBV_WC_REM_ACCESS_ERR },
		{ IBV_WR_RDMA_WRITE, PROT_READ, IBV_WC_REM_ACCESS_ERR },
		{ IBV_WR_RDMA_READ, PROT_READ, IBV_WC_SUCCESS },
		{ IBV_WR_RDMA_READ, PROT_NONE, IBV_WC_REM_ACCESS_ERR },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t *memory = map_pages(4);
		struct ibv_mr *mr;
		bool atomic = rows[i].opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;

		pair_open(&pair, NULL);
		mr = reg(pair.b.pd, memory, 4 * PAGE, ON_DEMAND);
		if (rows[i].protection < 0)
			munmap(memory + 2 * PAGE, PAGE);
		else
			mprotect(memory + 2 * PAGE, PAGE, rows[i].protection);
		/* The page before it is mapped. */
		post_sge(&pair.a, IBV_WR_RDMA_WRITE, 1, sge_of(&pair.a, 0, PAGE), mr->rkey,
			 (uintptr_t)memory + PAGE);
		expect_wc(&pair.a, 1, IBV_WC_SUCCESS);
		post_sge(&pair.a, rows[i].opcode, 2, sge_of(&pair.a, 0, atomic ? 8 : PAGE),
			 mr->rkey, (uintptr_t)memory + 2 * PAGE - (atomic ? 0 : 1));
		expect_wc(&pair.a, 2, rows[i].status);
		assert_int_equal(ibv_dereg_mr(mr), 0);
		munmap(memory, 4 * PAGE);
		pair_close(&pair);
	}
}

static void local_memory_on_demand_that_is_not_there(void **state)
{
	uint8_t *memory;
	struct ibv_mr *mr;

	(void)state;
	for (int row = 0; row < 3; row++) {
		memory = map_pages(2);
		pair_open(&pair, NULL);
		mr = reg(pair.a.pd, memory, 2 * PAGE, ON_DEMAND);
		munmap(memory, PAGE);
		if (row == 0)
			post_sge(&pair.a, IBV_WR_RDMA_WRITE, 1, in(mr, (uintptr_t)memory, 2 * PAGE),
				 pair.b.mr->rkey, (uintptr_t)pair.b.buffer);
		if (row == 1)
			post_sge(&pair.a, IBV_WR_RDMA_READ, 1, in(mr, (uintptr_t)memory, 2 * PAGE),
				 pair.b.mr->rkey, (uintptr_t)pair.b.buffer);
		if (row == 2) {
			receive_sge(&pair.a, 1, in(mr, (uintptr_t)memory, 2 * PAGE));
			post_sge(&pair.b, IBV_WR_SEND, 2, sge_of(&pair.b, 0, 100), 0, 0);
			expect_wc(&pair.b, 2, IBV_WC_REM_OP_ERR);
		}
		expect_wc(&pair.a, 1, IBV_WC_LOC_PROT_ERR);
		assert_int_equal(ibv_dereg_mr(mr), 0);
		munmap(memory + PAGE, PAGE);
		pair_close(&pair);
	}
}

static void memory_that_comes_after_the_region(void **state)
{
	uint8_t *memory = map_pages(2);
	struct ibv_mr *mr;

	(void)state;
	pair_open(&pair, NULL);
	/* As late as possible: another mapping, by any thread, may get this address. */
	munmap(memory, 2 * PAGE);
	mr = reg(pair.b.pd, memory, 2 * PAGE, ON_DEMAND);
	assert_ptr_equal(mmap(memory, 2 * PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
			 memory);
	pair.a.buffer[0] = 0x33;
	post_sge(&pair.a, IBV_WR_RDMA_WRITE, 1, sge_of(&pair.a, 0, 1), mr->rkey, (uintptr_t)memory);
	expect_wc(&pair.a, 1, IBV_WC_SUCCESS);
	assert_int_equal(memory[0], 0x33);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	munmap(memory, 2 * PAGE);
	pair_close(&pair);
}

static void the_whole_address_space(void **state)
{
	uint64_t *heap = calloc(2, sizeof(*heap));
	uint8_t on_stack[100];
	struct ibv_mr *mr;

	(void)state;
	pair_open(&pair, NULL);
	mr = reg(pair.b.pd, NULL, SIZE_MAX, ON_DEMAND);
	memset(pair.a.buffer, 0x21, 100);
	post_sge(&pair.a, IBV_WR_RDMA_WRITE, 1, sge_of(&pair.a, 0, 100), mr->rkey,
		 (uintptr_t)on_stack);
	expect_wc(&pair.a, 1, IBV_WC_SUCCESS);
	assert_memory_equal(on_stack, pair.a.buffer, 100);
	post_sge(&pair.a, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, sge_of(&pair.a, 0, 8), mr->rkey,
		 (uintptr_t)heap);
	expect_wc(&pair.a, 2, IBV_WC_SUCCESS);
	assert_int_equal(heap[0], 3);
	/* Nothing is mapped at 0, nor beyond the addresses of a process (see below). */
	post_sge(&pair.a, IBV_WR_RDMA_WRITE, 3, sge_of(&pair.a, 0, 100), mr->rkey, 0);
	expect_wc(&pair.a, 3, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	free(heap);
	pair_close(&pair);
}

static void beyond_every_address(void **state)
{
	static const uint64_t addresses[] = { UINT64_MAX, UINT64_MAX - 50, UINT64_C(1) << 63,
					      UINT64_C(1) << 47 };
	struct ibv_mr *mr;

	(void)state;
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		pair_open(&pair, NULL);
		mr = reg(pair.b.pd, NULL, SIZE_MAX, ON_DEMAND);
		post_sge(&pair.a, IBV_WR_RDMA_READ, 1, sge_of(&pair.a, 0, 100), mr->rkey,
			 addresses[i]);
		expect_wc(&pair.a, 1, IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(ibv_dereg_mr(mr), 0);
		pair_close(&pair);
	}
}

static int advise(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		  struct ibv_sge sge)
{
	return ibv_advise_mr(pd, advice, flags, &sge, 1);
}

static void advice(void **state)
{
	const enum ibv_advise_mr_advice read = IBV_ADVISE_MR_ADVICE_PREFETCH,
					write = IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
					present = IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT;
	uint8_t *memory = map_pages(4);
	uint64_t at = (uintptr_t)memory;
	unsigned char resident[4];
	struct ibv_mr *mr, *read_only, *plain;
	struct ibv_mw *window;
	struct ibv_pd *other = ibv_alloc_pd(the_context());

	(void)state;
	pair_open(&pair, NULL);
	mr = reg(pair.a.pd, memory, 4 * PAGE, ON_DEMAND);
	read_only = reg(pair.a.pd, memory, 4 * PAGE, IBV_ACCESS_ON_DEMAND);
	plain = pair.a.mr;
	window = ibv_alloc_mw(pair.a.pd, IBV_MW_TYPE_1);

	assert_int_equal(advise(pair.a.pd, present, 0, in(mr, at, 4 * PAGE)), 0);
	assert_int_equal(mincore(memory, 4 * PAGE, resident), 0);
	assert_int_equal(resident[1] & 1, 0);
	assert_int_equal(
		advise(pair.a.pd, write, IBV_ADVISE_MR_FLAG_FLUSH, in(mr, at + PAGE, 2 * PAGE)), 0);
	assert_int_equal(mincore(memory, 4 * PAGE, resident), 0);
	assert_int_equal(resident[0] & 1, 0);
	assert_int_equal(resident[1] & 1, 1);
	assert_int_equal(resident[2] & 1, 1);
	assert_int_equal(advise(pair.a.pd, read, 0, in(read_only, at, PAGE)), 0);

	assert_int_equal(advise(pair.a.pd, write, 0, in(read_only, at, PAGE)), EPERM);
	assert_int_equal(advise(other, read, 0, in(mr, at, PAGE)), EPERM);
	assert_int_equal(advise(pair.a.pd, read, 0, in(mr, at, 4 * PAGE + 1)), EFAULT);
	assert_int_equal(advise(pair.a.pd, read, 0, in(mr, at - 1, 1)), EFAULT);
	assert_int_equal(advise(pair.a.pd, read, 2, in(mr, at, PAGE)), EINVAL);
	assert_int_equal(advise(pair.a.pd, read, 0, sge_of(&pair.a, 0, PAGE)), EINVAL);
	assert_int_equal(advise(pair.a.pd, read, 0, (struct ibv_sge){ at, 1, window->rkey }),
			 EINVAL);
	assert_int_equal(advise(pair.a.pd, (enum ibv_advise_mr_advice)77, 0, in(mr, at, PAGE)),
			 EOPNOTSUPP);
	assert_int_equal(ibv_advise_mr(pair.a.pd, read, 0, NULL, 0), EINVAL);
	munmap(memory + PAGE, PAGE);
	assert_int_equal(advise(pair.a.pd, read, 0, in(mr, at, 4 * PAGE)), EFAULT);
	assert_int_equal(ibv_dereg_mr(read_only), 0);
	assert_int_equal(advise(pair.a.pd, read, 0, (struct ibv_sge){ at, 1, plain->lkey ^ 1 }),
			 EFAULT);

	assert_int_equal(ibv_dealloc_mw(window), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(other), 0);
	munmap(memory, 4 * PAGE);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_operation_on_demand),
		cmocka_unit_test(memory_on_demand_that_is_not_there),
		cmocka_unit_test(local_memory_on_demand_that_is_not_there),
		cmocka_unit_test(memory_that_comes_after_the_region),
		cmocka_unit_test(the_whole_address_space),
		cmocka_unit_test(beyond_every_address),
		cmocka_unit_test(advice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
