/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Regions of dma-bufs.  A memfd, which is mapped as a udmabuf is, takes the place of one; /dev/null
 * and a pipe take that of an exporter that cannot be mapped.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "verbs_memory.h"

enum {
	OFFSET = PAGE + 24,
	LENGTH = 3 * PAGE, /* length of the region */
	BYTES = 5 * PAGE,  /* size of the memfd */
};

static const uint64_t iova = UINT64_C(0x7123456000) + 24;

static struct pair pair;

static int make_memfd(void)
{
	int fd = memfd_create("dmabuf", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, BYTES), 0);
	return fd;
}

/* Maps all of fd. */
static uint8_t *map_shared(int fd)
{
	uint8_t *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	return memory;
}

/* Returns the number of mappings of memfds named dmabuf in this process. */
static int mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	int count = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		count += !!strstr(line, "/memfd:dmabuf");
	fclose(maps);
	return count;
}

static void peers_access_the_buffer(void **state)
{
	int fd = make_memfd();
	uint8_t *memory = map_shared(fd);
	struct ibv_mr *mr;

	(void)state;
	pair_open(&pair, NULL);
	mr = ibv_reg_dmabuf_mr(pair.b.pd, OFFSET, LENGTH, iova, fd, ALL_ACCESS);
	assert_non_null(mr);
	assert_int_equal(mr->length, LENGTH);
	assert_int_equal(mappings(), 2);
	/* The region needs neither the descriptor nor another mapping. */
	close(fd);

	memset(pair.a.buffer, 0x5a, LENGTH);
	post_sge(&pair.a, IBV_WR_RDMA_WRITE, 1, sge_of(&pair.a, 0, LENGTH), mr->rkey, iova);
	expect_wc(&pair.a, 1, IBV_WC_SUCCESS);
	assert_int_equal(memory[OFFSET - 1], 0);
	for (size_t i = 0; i < LENGTH; i++)
		assert_int_equal(memory[OFFSET + i], 0x5a);
	assert_int_equal(memory[OFFSET + LENGTH], 0);

	memset(memory + OFFSET, 0x77, 1000);
	post_sge(&pair.a, IBV_WR_RDMA_READ, 2, sge_of(&pair.a, 0, 1001), mr->rkey, iova);
	expect_wc(&pair.a, 2, IBV_WC_SUCCESS);
	assert_int_equal(pair.a.buffer[0], 0x77);
	assert_int_equal(pair.a.buffer[999], 0x77);
	assert_int_equal(pair.a.buffer[1000], 0x5a);

	memset(memory + OFFSET + 8, 0, 8);
	memory[OFFSET + 8] = 41;
	post_sge(&pair.a, IBV_WR_ATOMIC_FETCH_AND_ADD, 3, sge_of(&pair.a, 0, 8), mr->rkey,
		 iova + 8);
	expect_wc(&pair.a, 3, IBV_WC_SUCCESS);
	assert_int_equal(pair.a.buffer[0], 41);
	assert_int_equal(memory[OFFSET + 8], 44);

	post_sge(&pair.a, IBV_WR_RDMA_WRITE, 4, sge_of(&pair.a, 0, 2), mr->rkey, iova + LENGTH - 1);
	expect_wc(&pair.a, 4, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(memory[OFFSET + LENGTH - 1], 0x5a);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(mappings(), 1);
	munmap(memory, BYTES);
	pair_close(&pair);
}

static void requests_access_the_buffer(void **state)
{
	int fd = make_memfd();
	uint8_t *memory = map_shared(fd);
	struct ibv_mr *mr;

	(void)state;
	pair_open(&pair, NULL);
	mr = ibv_reg_dmabuf_mr(pair.a.pd, OFFSET, LENGTH, iova, fd, IBV_ACCESS_LOCAL_WRITE);
	close(fd);
	assert_non_null(mr);
	memset(memory, 0x11, BYTES);
	memset(pair.b.buffer, 0x22, LENGTH);
	post_sge(&pair.a, IBV_WR_RDMA_WRITE, 1, in(mr, iova, LENGTH), pair.b.mr->rkey,
		 (uintptr_t)pair.b.buffer);
	expect_wc(&pair.a, 1, IBV_WC_SUCCESS);
	for (size_t i = 0; i < LENGTH; i++)
		assert_int_equal(pair.b.buffer[i], 0x11);
	receive_sge(&pair.a, 2, in(mr, iova + 100, 50));
	memset(pair.b.buffer, 0x33, 50);
	post_sge(&pair.b, IBV_WR_SEND, 3, sge_of(&pair.b, 0, 50), 0, 0);
	expect_wc(&pair.a, 2, IBV_WC_SUCCESS);
	expect_wc(&pair.b, 3, IBV_WC_SUCCESS);
	assert_int_equal(memory[OFFSET + 99], 0x11);
	assert_int_equal(memory[OFFSET + 100], 0x33);
	assert_int_equal(memory[OFFSET + 149], 0x33);
	assert_int_equal(memory[OFFSET + 150], 0x11);
	/* The peer has no access right, and the region cannot be changed. */
	post_sge(&pair.b, IBV_WR_RDMA_READ, 4, sge_of(&pair.b, 0, 8), mr->rkey, iova);
	expect_wc(&pair.b, 4, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	munmap(memory, BYTES);
	pair_close(&pair);
}

static int dmabuf_errno(struct ibv_pd *pd, uint64_t offset, size_t length, int fd, int access)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_dmabuf_mr(pd, offset, length, offset % PAGE, fd, access);
	if (!mr)
		return errno;
	assert_int_equal(ibv_dereg_mr(mr), 0);
	return 0;
}

static void ranges_and_rights_that_are_refused(void **state)
{
	struct ibv_pd *pd = ibv_alloc_pd(the_context());
	int fd = make_memfd();

	(void)state;
	assert_int_equal(dmabuf_errno(pd, 0, BYTES, fd, ALL_ACCESS), 0);
	assert_int_equal(dmabuf_errno(pd, BYTES - 1, 1, fd, ALL_ACCESS), 0);
	assert_int_equal(dmabuf_errno(pd, 0, BYTES + 1, fd, ALL_ACCESS), EINVAL);
	assert_int_equal(dmabuf_errno(pd, 1, BYTES, fd, ALL_ACCESS), EINVAL);
	assert_int_equal(dmabuf_errno(pd, BYTES, 1, fd, ALL_ACCESS), EINVAL);
	assert_int_equal(dmabuf_errno(pd, 0, 0, fd, ALL_ACCESS), EINVAL);
	assert_int_equal(dmabuf_errno(pd, UINT64_MAX - 4095, 4096, fd, ALL_ACCESS), EINVAL);
	assert_int_equal(dmabuf_errno(pd, 4096, SIZE_MAX - 4095, fd, ALL_ACCESS), EINVAL);
	assert_int_equal(dmabuf_errno(pd, 0, PAGE, fd, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	assert_int_equal(dmabuf_errno(pd, 0, PAGE, fd, ON_DEMAND), EINVAL);
	assert_int_equal(dmabuf_errno(pd, 0, PAGE, fd, ALL_ACCESS | IBV_ACCESS_ZERO_BASED), EINVAL);
	assert_int_equal(dmabuf_errno(pd, 0, PAGE, fd, ALL_ACCESS | IBV_ACCESS_RELAXED_ORDERING),
			 0);
	errno = 0;
	assert_null(ibv_reg_dmabuf_mr(pd, 8, PAGE, 16, fd, 0));
	assert_int_equal(errno, EINVAL);
	errno = 0;
	assert_null(ibv_reg_dmabuf_mr(pd, 0, 2 * PAGE, UINT64_MAX - PAGE + 1, fd, 0));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(mappings(), 0);
	close(fd);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void descriptors_that_are_refused(void **state)
{
	struct ibv_pd *pd = ibv_alloc_pd(the_context());
	int ends[2], null = open("/dev/null", O_RDWR), fd = make_memfd();
	char path[64];
	int read_only;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(dmabuf_errno(pd, 0, PAGE, ends[0], IBV_ACCESS_REMOTE_READ), EOPNOTSUPP);
	assert_int_equal(dmabuf_errno(pd, 0, PAGE, null, ALL_ACCESS), EOPNOTSUPP);
	assert_int_equal(dmabuf_errno(pd, 0, PAGE, -1, ALL_ACCESS), EBADF);
	close(ends[0]);
	assert_int_equal(dmabuf_errno(pd, 0, PAGE, ends[0], ALL_ACCESS), EBADF);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	read_only = open(path, O_RDONLY);
	assert_true(read_only >= 0);
	assert_int_equal(dmabuf_errno(pd, 0, PAGE, read_only, IBV_ACCESS_REMOTE_READ), 0);
	assert_int_equal(dmabuf_errno(pd, 0, PAGE, read_only, ALL_ACCESS), EACCES);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
	assert_int_equal(dmabuf_errno(pd, 0, PAGE, fd, ALL_ACCESS), EPERM);
	assert_int_equal(mappings(), 0);
	close(read_only);
	close(ends[1]);
	close(null);
	close(fd);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peers_access_the_buffer),
		cmocka_unit_test(requests_access_the_buffer),
		cmocka_unit_test(ranges_and_rights_that_are_refused),
		cmocka_unit_test(descriptors_that_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
