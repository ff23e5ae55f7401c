/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Contexts where memfd_create() fails, as in a strict container: the descriptors of all are the
 * same file, but each context has objects of its own.
 */
#include "verbs_pair.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Makes memfd_create() fail in this process from now on; returns false where that is impossible. */
static bool forbid_memory_files(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(code) / sizeof(code[0]), .filter = code };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int open_contexts(void **state)
{
	static struct ibv_context *contexts[2];
	struct stat file[2];

	for (int i = 0; i < 2; i++) {
		contexts[i] = ibv_open_device(the_context()->device);
		if (!contexts[i] || fstat(contexts[i]->cmd_fd, &file[i]))
			return -1;
	}
	*state = contexts;
	return file[0].st_dev == file[1].st_dev && file[0].st_ino == file[1].st_ino ? 0 : -1;
}

static void objects_are_not_shared(void **state)
{
	struct ibv_context **contexts = *state;
	struct ibv_pd *pd = ibv_alloc_pd(contexts[0]);
	struct ibv_cq *cq = ibv_create_cq(contexts[1], 16, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq };

	assert_non_null(pd);
	assert_non_null(cq);
	errno = 0;
	assert_null(ibv_import_pd(contexts[1], pd->handle));
	assert_int_equal(errno, ENOENT);
	errno = 0;
	assert_null(ibv_create_qp(pd, &attr));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void a_context_is_not_imported(void **state)
{
	struct ibv_context **contexts = *state;
	int fd = dup(contexts[0]->cmd_fd);

	errno = 0;
	assert_null(ibv_import_device(fd));
	assert_int_equal(errno, EOPNOTSUPP);
	close(fd);
}

static int close_contexts(void **state)
{
	struct ibv_context **contexts = *state;

	return ibv_close_device(contexts[0]) | ibv_close_device(contexts[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(objects_are_not_shared),
		cmocka_unit_test(a_context_is_not_imported),
	};

	if (!forbid_memory_files())
		return 77; /* skipped */
	return cmocka_run_group_tests(tests, open_contexts, close_contexts);
}
