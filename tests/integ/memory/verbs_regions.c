/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Memory regions: null regions, device memory, regions with an IOVA or of length 0, changes by
 * ibv_rereg_mr(), and registrations that must fail.
 */
#include "verbs_memory.h"

static struct pair pair;

static void the_null_region(void **state)
{
	struct ibv_mr *null_mr;
	struct ibv_sge sge[2];
	struct ibv_send_wr wr = { .sg_list = sge,
				  .num_sge = 2,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	(void)state;
	pair_open(&pair, NULL);
	null_mr = ibv_alloc_null_mr(pair.a.pd);
	assert_non_null(null_mr);
	memset(pair.b.buffer, 0xff, END_BUFFER);
	/* The null region sends zeros, from any address, before the bytes of another region. */
	sge[0] = in(null_mr, 0xdeadbeef, 70000);
	sge[1] = sge_of(&pair.a, 0, 4);
	memset(pair.a.buffer, 0x11, 4);
	wr.wr.rdma.rkey = pair.b.mr->rkey;
	wr.wr.rdma.remote_addr = (uintptr_t)pair.b.buffer;
	assert_int_equal(ibv_post_send(pair.a.qp, &wr, &bad), 0);
	expect_wc(&pair.a, 0, IBV_WC_SUCCESS);
	for (size_t i = 0; i < 70000; i++)
		assert_int_equal(pair.b.buffer[i], 0);
	assert_int_equal(pair.b.buffer[70000], 0x11);
	assert_int_equal(pair.b.buffer[70004], 0xff);
	/* Data read or received into it is discarded; nothing of it is returned. */
	post_sge(&pair.a, IBV_WR_RDMA_READ, 1, in(null_mr, 0, 70000), pair.b.mr->rkey,
		 (uintptr_t)pair.b.buffer + 100000);
	expect_wc(&pair.a, 1, IBV_WC_SUCCESS);
	receive_sge(&pair.a, 2, in(null_mr, 5, 70000));
	post_sge(&pair.b, IBV_WR_SEND, 3, sge_of(&pair.b, 100000, 60000), 0, 0);
	expect_wc(&pair.b, 3, IBV_WC_SUCCESS);
	wc = expect_wc(&pair.a, 2, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, 60000);
	post_sge(&pair.a, IBV_WR_RDMA_WRITE, 4, in(null_mr, 0, 5000), pair.b.mr->rkey,
		 (uintptr_t)pair.b.buffer + 200000);
	expect_wc(&pair.a, 4, IBV_WC_SUCCESS);
	assert_int_equal(pair.b.buffer[200000], 0);
	assert_int_equal(pair.b.buffer[204999], 0);
	/* The peer cannot access the null region, and it cannot be changed. */
	assert_int_equal(ibv_rereg_mr(null_mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	post_sge(&pair.b, IBV_WR_RDMA_READ, 5, sge_of(&pair.b, 0, 8), null_mr->lkey, 0);
	expect_wc(&pair.b, 5, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(null_mr), 0);
	pair_close(&pair);
}

static struct ibv_dm *alloc_dm(size_t length)
{
	struct ibv_alloc_dm_attr attr = { .length = length };
	struct ibv_dm *dm = ibv_alloc_dm(the_context(), &attr);

	assert_non_null(dm);
	return dm;
}

static void device_memory(void **state)
{
	const int access = ALL_ACCESS | IBV_ACCESS_ZERO_BASED;
	struct ibv_dm *dm = alloc_dm(3 * PAGE);
	struct ibv_mr *mr, *part;
	uint64_t words[4] = { 1, 2, 3, 4 };

	(void)state;
	pair_open(&pair, NULL);
	mr = ibv_reg_dm_mr(pair.b.pd, dm, 0, 3 * PAGE, access);
	part = ibv_reg_dm_mr(pair.b.pd, dm, PAGE, PAGE, access);
	assert_non_null(mr);
	assert_non_null(part);
	assert_int_equal(ibv_memcpy_to_dm(dm, PAGE, words, sizeof(words)), 0);
	post_sge(&pair.a, IBV_WR_RDMA_READ, 1, sge_of(&pair.a, 0, 32), part->rkey, 0);
	expect_wc(&pair.a, 1, IBV_WC_SUCCESS);
	assert_memory_equal(pair.a.buffer, words, sizeof(words));
	post_sge(&pair.a, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, sge_of(&pair.a, 0, 8), mr->rkey,
		 PAGE + 8);
	expect_wc(&pair.a, 2, IBV_WC_SUCCESS);
	assert_int_equal(pair.a.buffer[0], 2);
	assert_int_equal(ibv_memcpy_from_dm(words, dm, PAGE + 8, 8), 0);
	assert_int_equal(words[0], 5);
	receive_sge(&pair.b, 3, in(mr, 2 * PAGE, PAGE));
	memset(pair.a.buffer, 0x77, PAGE);
	post_sge(&pair.a, IBV_WR_SEND, 4, sge_of(&pair.a, 0, PAGE), 0, 0);
	expect_wc(&pair.a, 4, IBV_WC_SUCCESS);
	expect_wc(&pair.b, 3, IBV_WC_SUCCESS);
	post_sge(&pair.b, IBV_WR_RDMA_WRITE, 5, in(mr, 2 * PAGE + 1, 100), pair.a.mr->rkey,
		 (uintptr_t)pair.a.buffer + PAGE);
	expect_wc(&pair.b, 5, IBV_WC_SUCCESS);
	assert_int_equal(pair.a.buffer[PAGE + 99], 0x77);
	assert_int_equal(ibv_free_dm(dm), EBUSY);
	post_sge(&pair.a, IBV_WR_RDMA_READ, 6, sge_of(&pair.a, 0, 8), part->rkey, PAGE - 7);
	expect_wc(&pair.a, 6, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(part), 0);
	assert_int_equal(ibv_free_dm(dm), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
	pair_close(&pair);
}

static int dm_errno(size_t length, uint32_t log_align, uint32_t comp_mask)
{
	struct ibv_alloc_dm_attr attr = { length, log_align, comp_mask };
	struct ibv_dm *dm;

	errno = 0;
	dm = ibv_alloc_dm(the_context(), &attr);
	if (!dm)
		return errno;
	assert_int_equal(ibv_free_dm(dm), 0);
	return 0;
}

static int dm_mr_errno(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length,
		       unsigned int access)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_dm_mr(pd, dm, offset, length, access);
	if (!mr)
		return errno;
	assert_int_equal(ibv_dereg_mr(mr), 0);
	return 0;
}

static void device_memory_that_is_refused(void **state)
{
	const unsigned int access = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE;
	struct ibv_pd *pd = ibv_alloc_pd(the_context());
	struct ibv_device_attr_ex device;
	struct ibv_dm *dm, *half;
	uint32_t word = 0;

	(void)state;
	assert_int_equal(ibv_query_device_ex(the_context(), NULL, &device), 0);
	assert_int_equal(dm_errno(device.max_dm_size, 0, 0), 0);
	assert_int_equal(dm_errno(device.max_dm_size + 1, 0, 0), EINVAL);
	assert_int_equal(dm_errno(0, 0, 0), EINVAL);
	assert_int_equal(dm_errno(64, 63, 0), EINVAL);
	assert_int_equal(dm_errno(64, 0, 1), EINVAL);
	/* The limit applies to the sum of all allocations (rule U1). */
	half = alloc_dm(device.max_dm_size / 2);
	assert_int_equal(dm_errno(device.max_dm_size / 2 + 1, 0, 0), ENOMEM);
	assert_int_equal(dm_errno(device.max_dm_size / 2, 0, 0), 0);
	assert_int_equal(ibv_free_dm(half), 0);

	dm = alloc_dm(100);
	assert_int_equal(ibv_memcpy_to_dm(dm, 1, &word, 4), EINVAL);
	assert_int_equal(ibv_memcpy_to_dm(dm, 0, &word, 3), EINVAL);
	assert_int_equal(ibv_memcpy_to_dm(dm, 100, &word, 4), EFAULT);
	assert_int_equal(ibv_memcpy_to_dm(dm, 96, &word, 4), 0);
	assert_int_equal(ibv_memcpy_from_dm(&word, dm, 2, 4), EINVAL);
	assert_int_equal(ibv_memcpy_from_dm(&word, dm, UINT64_MAX - 3, 4), EFAULT);
	assert_int_equal(dm_mr_errno(pd, dm, 0, 100, access), 0);
	assert_int_equal(dm_mr_errno(pd, dm, 0, 101, access), EINVAL);
	assert_int_equal(dm_mr_errno(pd, dm, 1, 100, access), EINVAL);
	assert_int_equal(dm_mr_errno(pd, dm, UINT64_MAX, 2, access), EINVAL);
	assert_int_equal(dm_mr_errno(pd, dm, 0, 100, IBV_ACCESS_LOCAL_WRITE), EINVAL);
	assert_int_equal(
		dm_mr_errno(pd, dm, 0, 100, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_WRITE),
		EINVAL);
	assert_int_equal(dm_mr_errno(pd, dm, 0, 100, access | IBV_ACCESS_ON_DEMAND), EINVAL);
	assert_int_equal(ibv_free_dm(dm), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void addresses_of_ones_own(void **state)
{
	const uint64_t iova = UINT64_C(0x123456789abc);
	struct ibv_mr *mr, *zero;

	(void)state;
	pair_open(&pair, NULL);
	mr = ibv_reg_mr_iova(pair.b.pd, pair.b.buffer + 100, 1000, iova, ALL_ACCESS);
	zero = ibv_reg_mr(pair.b.pd, pair.b.buffer + 100, 1000, ALL_ACCESS | IBV_ACCESS_ZERO_BASED);
	assert_non_null(mr);
	assert_non_null(zero);
	pair.a.buffer[0] = 8;
	post_sge(&pair.a, IBV_WR_RDMA_WRITE, 1, sge_of(&pair.a, 0, 1), mr->rkey, iova + 999);
	expect_wc(&pair.a, 1, IBV_WC_SUCCESS);
	assert_int_equal(pair.b.buffer[1099], 8);
	post_sge(&pair.a, IBV_WR_RDMA_WRITE, 2, sge_of(&pair.a, 0, 1), zero->rkey, 0);
	expect_wc(&pair.a, 2, IBV_WC_SUCCESS);
	assert_int_equal(pair.b.buffer[100], 8);
	post_sge(&pair.a, IBV_WR_RDMA_WRITE, 3, sge_of(&pair.a, 0, 1), mr->rkey,
		 (uintptr_t)pair.b.buffer + 100);
	expect_wc(&pair.a, 3, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dereg_mr(zero), 0);
	pair_close(&pair);
}

static void regions_that_are_changed(void **state)
{
	const int translation = IBV_REREG_MR_CHANGE_TRANSLATION,
		  rights = IBV_REREG_MR_CHANGE_ACCESS, domain = IBV_REREG_MR_CHANGE_PD;
	struct ibv_pd *other;
	struct ibv_mr *mr;

	(void)state;
	pair_open(&pair, NULL);
	other = ibv_alloc_pd(the_context());
	mr = reg(other, pair.b.buffer, 100, IBV_ACCESS_LOCAL_WRITE);
	/* All three changes in one call. */
	assert_int_equal(ibv_rereg_mr(mr, translation | rights | domain, pair.b.pd,
				      pair.b.buffer + 1000, 500, ALL_ACCESS),
			 0);
	assert_int_equal(ibv_dealloc_pd(other), 0);
	pair.a.buffer[0] = 6;
	post_sge(&pair.a, IBV_WR_RDMA_WRITE, 1, sge_of(&pair.a, 0, 1), mr->rkey,
		 (uintptr_t)pair.b.buffer + 1499);
	expect_wc(&pair.a, 1, IBV_WC_SUCCESS);
	assert_int_equal(pair.b.buffer[1499], 6);

	assert_int_equal(ibv_rereg_mr(mr, translation, NULL, NULL, 10, 0), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(mr, translation, NULL, pair.b.buffer, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(mr, 64, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(mr, translation, NULL, pair.b.buffer, 10, ALL_ACCESS),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(mr, rights, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE),
			 IBV_REREG_MR_ERR_CMD);
	assert_int_equal(ibv_rereg_mr(mr, translation, NULL, (void *)16, 10, 0),
			 IBV_REREG_MR_ERR_CMD);
	/* The calls that failed have not changed the region. */
	post_sge(&pair.a, IBV_WR_RDMA_WRITE, 2, sge_of(&pair.a, 0, 1), mr->rkey,
		 (uintptr_t)pair.b.buffer + 1000);
	expect_wc(&pair.a, 2, IBV_WC_SUCCESS);
	/* To a region on demand and back. */
	assert_int_equal(ibv_rereg_mr(mr, rights, NULL, NULL, 0, ON_DEMAND), 0);
	post_sge(&pair.a, IBV_WR_RDMA_WRITE, 3, sge_of(&pair.a, 0, 1), mr->rkey,
		 (uintptr_t)pair.b.buffer + 1001);
	expect_wc(&pair.a, 3, IBV_WC_SUCCESS);
	assert_int_equal(ibv_rereg_mr(mr, rights, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE), 0);
	post_sge(&pair.a, IBV_WR_RDMA_WRITE, 4, sge_of(&pair.a, 0, 1), mr->rkey,
		 (uintptr_t)pair.b.buffer + 1001);
	expect_wc(&pair.a, 4, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	pair_close(&pair);
}

static int reg_errno(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_mr(pd, addr, length, access);
	if (!mr)
		return errno;
	assert_int_equal(ibv_dereg_mr(mr), 0);
	return 0;
}

static void registrations_that_are_refused(void **state)
{
	struct ibv_pd *pd = ibv_alloc_pd(the_context());
	uint8_t *memory = map_pages(1);

	(void)state;
	assert_int_equal(reg_errno(pd, memory, PAGE, ALL_ACCESS | IBV_ACCESS_RELAXED_ORDERING), 0);
	assert_int_equal(reg_errno(pd, memory, PAGE, ON_DEMAND | IBV_ACCESS_HUGETLB), 0);
	assert_int_equal(reg_errno(pd, memory, PAGE, ALL_ACCESS | IBV_ACCESS_HUGETLB), 0);
	assert_int_equal(reg_errno(pd, NULL, SIZE_MAX, ON_DEMAND | IBV_ACCESS_HUGETLB), EINVAL);
	assert_int_equal(reg_errno(pd, NULL, SIZE_MAX, ON_DEMAND | IBV_ACCESS_ZERO_BASED), EINVAL);
	assert_int_equal(reg_errno(pd, NULL, SIZE_MAX, ALL_ACCESS), EINVAL);
	assert_int_equal(reg_errno(pd, memory, SIZE_MAX, ON_DEMAND), EINVAL);
	assert_int_equal(
		reg_errno(pd, memory, PAGE, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_REMOTE_WRITE),
		EINVAL);
	/* The memory of a region that is not on demand must be mapped already. */
	munmap(memory, PAGE);
	assert_int_equal(reg_errno(pd, memory, PAGE, ALL_ACCESS), EFAULT);
	assert_int_equal(reg_errno(pd, memory, PAGE, ON_DEMAND), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* Regions of length 0 can start anywhere; peer and queue pair must not access a byte of them. */
static void regions_without_a_byte(void **state)
{
	static const int accesses[] = { ALL_ACCESS, ALL_ACCESS | IBV_ACCESS_ON_DEMAND,
					ALL_ACCESS | IBV_ACCESS_ZERO_BASED };

	(void)state;
	for (size_t i = 0; i < sizeof(accesses) / sizeof(accesses[0]); i++) {
		struct ibv_mr *local, *remote;

		pair_open(&pair, NULL);
		assert_int_equal(reg_errno(pair.a.pd, NULL, 0, accesses[i]), 0);
		local = ibv_reg_mr(pair.a.pd, pair.a.buffer + 100, 0, accesses[i]);
		remote = ibv_reg_mr(pair.b.pd, pair.b.buffer + 100, 0, accesses[i]);
		assert_non_null(local);
		assert_non_null(remote);
		assert_int_equal(remote->length, 0);

		uint64_t start =
			accesses[i] & IBV_ACCESS_ZERO_BASED ? 0 : (uintptr_t)pair.b.buffer + 100;

		post_sge(&pair.a, IBV_WR_RDMA_WRITE, 1, sge_of(&pair.a, 0, 0), remote->rkey, start);
		expect_wc(&pair.a, 1, IBV_WC_SUCCESS);
		post_sge(&pair.a, IBV_WR_RDMA_WRITE, 2, sge_of(&pair.a, 0, 1), remote->rkey, start);
		expect_wc(&pair.a, 2, IBV_WC_REM_ACCESS_ERR);
		post_sge(&pair.b, IBV_WR_SEND, 3, in(local, start, 1), 0, 0);
		assert_int_not_equal(wait_wc(&pair.b).status, IBV_WC_SUCCESS);
		assert_int_equal(ibv_dereg_mr(local), 0);
		assert_int_equal(ibv_dereg_mr(remote), 0);
		pair_close(&pair);
	}
}

/* Requests without data need no memory: neither a list of SGEs nor a valid key. */
static void nothing_at_all(void **state)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };

	(void)state;
	pair_open(&pair, NULL);
	for (size_t i = 0; i < 2; i++) {
		struct ibv_send_wr wr = { .wr_id = i,
					  .opcode = opcodes[i],
					  .send_flags = IBV_SEND_SIGNALED };
		struct ibv_send_wr *bad;

		assert_int_equal(ibv_post_send(pair.a.qp, &wr, &bad), 0);
		expect_wc(&pair.a, i, IBV_WC_SUCCESS);
		post_sge(&pair.a, opcodes[i], 9, (struct ibv_sge){ 0 }, 0, 0);
		expect_wc(&pair.a, 9, IBV_WC_SUCCESS);
	}
	assert_int_equal(post_recv(&pair.b, 3, 0, 0), 0);
	post_sge(&pair.a, IBV_WR_SEND, 4, (struct ibv_sge){ 0 }, 0, 0);
	expect_wc(&pair.a, 4, IBV_WC_SUCCESS);
	assert_int_equal(expect_wc(&pair.b, 3, IBV_WC_SUCCESS).byte_len, 0);
	receive_sge(&pair.b, 5, (struct ibv_sge){ 0 });
	post_sge(&pair.a, IBV_WR_RDMA_WRITE_WITH_IMM, 6, (struct ibv_sge){ 0 }, 0, 0);
	expect_wc(&pair.a, 6, IBV_WC_SUCCESS);
	assert_int_equal(expect_wc(&pair.b, 5, IBV_WC_SUCCESS).byte_len, 0);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_null_region),
		cmocka_unit_test(device_memory),
		cmocka_unit_test(device_memory_that_is_refused),
		cmocka_unit_test(addresses_of_ones_own),
		cmocka_unit_test(regions_that_are_changed),
		cmocka_unit_test(registrations_that_are_refused),
		cmocka_unit_test(regions_without_a_byte),
		cmocka_unit_test(nothing_at_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
