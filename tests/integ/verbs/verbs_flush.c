/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * ibv_wr_flush() on a file that both sides have mapped.  Headers of rdma-core before v45 lack it,
 * so this program has the declarations of v45.
 */
#include "verbs_pair.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	GLOBAL = 1,	/* IBV_FLUSH_GLOBAL */
	PERSISTENT = 2, /* IBV_FLUSH_PERSISTENT */
	RANGE = 0,	/* IBV_FLUSH_RANGE */
	WHOLE = 1,	/* IBV_FLUSH_MR */
	ACCESS_GLOBAL = 1 << 8,
	ACCESS_PERSISTENT = 1 << 9,
	WITH_FLUSH = 1 << 11,
	WC_FLUSH = 8,
	FILE_BYTES = 3 * 4096,
	ALL_RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		     ACCESS_GLOBAL | ACCESS_PERSISTENT,
};

typedef void (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, size_t length,
			 uint8_t type, uint8_t level);

static struct pair pair;
static uint8_t *file;
static struct ibv_mr *file_mr;
static struct ibv_qp_ex *ex;

static int open_file(void **state)
{
	char name[] = "/tmp/verbs_flush.XXXXXX";
	int fd = mkstemp(name);
	struct ibv_qp_attr attr = { .qp_access_flags = ALL_RIGHTS };

	(void)state;
	assert_true(fd >= 0);
	unlink(name);
	assert_int_equal(ftruncate(fd, FILE_BYTES), 0);
	file = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(file, MAP_FAILED);
	close(fd);
	pair_open(&pair, &(struct pair_options){ .send_ops = IBV_QP_EX_WITH_RDMA_WRITE |
							     (uint64_t)WITH_FLUSH });
	assert_int_equal(ibv_modify_qp(pair.b.qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
	file_mr = ibv_reg_mr(pair.b.pd, file, FILE_BYTES, ALL_RIGHTS);
	assert_non_null(file_mr);
	ex = ibv_qp_to_qp_ex(pair.a.qp);
	assert_non_null(ex);
	return 0;
}

static int close_file(void **state)
{
	(void)state;
	assert_int_equal(ibv_dereg_mr(file_mr), 0);
	pair_close(&pair);
	munmap(file, FILE_BYTES);
	return 0;
}

/* Posts a FLUSH of the bytes from offset of the file.  Returns 0 or errno. */
static int flush(size_t offset, size_t length, uint8_t type, uint8_t level)
{
	wr_flush function;

	memcpy(&function,
	       (char *)ex + offsetof(struct ibv_qp_ex, wr_atomic_write) + sizeof(function),
	       sizeof(function));
	ibv_wr_start(ex);
	ex->wr_id = 7;
	ex->wr_flags = IBV_SEND_SIGNALED;
	function(ex, file_mr->rkey, (uintptr_t)file + offset, length, type, level);
	return ibv_wr_complete(ex);
}

static void expect_flush(size_t offset, size_t length, uint8_t type, uint8_t level)
{
	assert_int_equal(flush(offset, length, type, level), 0);
	assert_int_equal(expect_wc(&pair.a, 7, IBV_WC_SUCCESS).opcode, WC_FLUSH);
}

/* The first FLUSH that fails moves the queue pair to ERR. */
static void expect_failure(size_t offset, size_t length, uint8_t type, enum ibv_wc_status status)
{
	assert_int_equal(flush(offset, length, type, RANGE), 0);
	expect_wc(&pair.a, 7, status);
}

static void flush_after_write(void **state)
{
	(void)state;
	strcpy((char *)pair.a.buffer, "persistent");
	post_sge(&pair.a, IBV_WR_RDMA_WRITE, 1, sge_of(&pair.a, 0, 11), file_mr->rkey,
		 (uintptr_t)file + 4090);
	expect_wc(&pair.a, 1, IBV_WC_SUCCESS);
	expect_flush(4090, 11, GLOBAL, RANGE);
	expect_flush(4090, 11, PERSISTENT, RANGE);
	expect_flush(4090, 11, GLOBAL | PERSISTENT, RANGE);
	expect_flush(FILE_BYTES, 0, PERSISTENT, RANGE);
	assert_string_equal(file + 4090, "persistent");
}

/* Level IBV_FLUSH_MR ignores address and length. */
static void flush_whole_region(void **state)
{
	(void)state;
	expect_flush(2 * FILE_BYTES, FILE_BYTES, GLOBAL, WHOLE);
	expect_flush(2 * FILE_BYTES, FILE_BYTES, PERSISTENT, WHOLE);
	expect_failure(2 * FILE_BYTES, 1, GLOBAL, IBV_WC_REM_ACCESS_ERR);
}

static void flush_outside(void **state)
{
	(void)state;
	expect_failure(FILE_BYTES - 1, 2, GLOBAL, IBV_WC_REM_ACCESS_ERR);
}

static void flush_without_right_of_region(void **state)
{
	(void)state;
	assert_int_equal(ibv_dereg_mr(file_mr), 0);
	file_mr = ibv_reg_mr(pair.b.pd, file, FILE_BYTES, ALL_RIGHTS & ~ACCESS_PERSISTENT);
	assert_non_null(file_mr);
	expect_flush(0, FILE_BYTES, GLOBAL, RANGE);
	expect_failure(0, FILE_BYTES, PERSISTENT, IBV_WC_REM_ACCESS_ERR);
}

static void flush_on_demand(void **state)
{
	(void)state;
	assert_int_equal(ibv_dereg_mr(file_mr), 0);
	file_mr = ibv_reg_mr(pair.b.pd, file, FILE_BYTES, ALL_RIGHTS | IBV_ACCESS_ON_DEMAND);
	assert_non_null(file_mr);
	flush_after_write(state);
	flush_whole_region(state);
}

/* Memory that is unmapped after the registration cannot persist. */
static void flush_unmapped(void **state)
{
	(void)state;
	assert_int_equal(munmap(file + 4096, 4096), 0);
	expect_flush(0, 4096, PERSISTENT, RANGE);
	expect_failure(0, FILE_BYTES, PERSISTENT, IBV_WC_REM_ACCESS_ERR);
}

static void wrong_arguments(void **state)
{
	(void)state;
	assert_int_equal(flush(0, 1, 0, RANGE), EINVAL);
	assert_int_equal(flush(0, 1, 4 | GLOBAL, RANGE), EINVAL);
	assert_int_equal(flush(0, 1, GLOBAL, 2), EINVAL);
	assert_int_equal(flush(0, UINT64_C(1) << 32, GLOBAL, RANGE), EINVAL);
	expect_flush(0, 1, GLOBAL, RANGE);
}

/* Only shared mappings of files can be made persistent; all memory can be globally visible. */
static void registration(void **state)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | ACCESS_PERSISTENT;
	struct ibv_mr *mr = ibv_reg_mr(pair.b.pd, pair.b.buffer, 4096, ACCESS_GLOBAL);
	uint8_t *pages =
		mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *part;

	(void)state;
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	errno = 0;
	assert_null(ibv_reg_mr(pair.b.pd, pages, FILE_BYTES, access));
	assert_int_equal(errno, EINVAL);
	/* A file whose middle page is anonymous. */
	assert_ptr_equal(mmap(file + 4096, 4096, PROT_READ | PROT_WRITE,
			      MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
			 file + 4096);
	assert_null(ibv_reg_mr(pair.b.pd, file, FILE_BYTES, access));
	assert_int_equal(errno, EINVAL);
	part = ibv_reg_mr(pair.b.pd, file + 2 * 4096 + 1, 4095, access);
	assert_non_null(part);
	assert_int_equal(ibv_dereg_mr(part), 0);
	munmap(pages, FILE_BYTES);
}

/* Only RC has the operation. */
static void other_services(void **state)
{
	struct ibv_qp_init_attr_ex attr = { .qp_type = IBV_QPT_UC,
					    .send_cq = pair.a.cq,
					    .recv_cq = pair.a.cq,
					    .cap = { 1, 1, 1, 1, 0 },
					    .comp_mask = IBV_QP_INIT_ATTR_PD |
							 IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					    .pd = pair.a.pd,
					    .send_ops_flags = WITH_FLUSH };

	(void)state;
	errno = 0;
	assert_null(ibv_create_qp_ex(the_context(), &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.qp_type = IBV_QPT_UD;
	assert_null(ibv_create_qp_ex(the_context(), &attr));
	assert_int_equal(errno, EOPNOTSUPP);
}

static void capabilities(void **state)
{
	struct ibv_device_attr_ex attr;

	(void)state;
	assert_int_equal(ibv_query_device_ex(the_context(), NULL, &attr), 0);
	/* IB_UVERBS_DEVICE_FLUSH_GLOBAL and _PERSISTENT. */
	assert_int_equal(attr.device_cap_flags_ex >> 38 & 3, 3);
}

#define FLUSH_TEST(test) cmocka_unit_test_setup_teardown(test, open_file, close_file)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FLUSH_TEST(flush_after_write), FLUSH_TEST(flush_whole_region),
		FLUSH_TEST(flush_outside),     FLUSH_TEST(flush_without_right_of_region),
		FLUSH_TEST(flush_on_demand),   FLUSH_TEST(flush_unmapped),
		FLUSH_TEST(wrong_arguments),   FLUSH_TEST(registration),
		FLUSH_TEST(other_services),    FLUSH_TEST(capabilities),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
