/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A forked child: the parent's objects cannot be used in it, but no call hangs or crashes, the
 * parent continues undisturbed, and the child can open a device of its own.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_memory.h"

enum {
	CHILD_SECONDS = 25,
	/* Exceeds the default limit of mappings of a process if each region splits one. */
	SCATTERED_REGIONS = 40000,
};

static void expect_child_ok(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void traffic(struct pair *pair)
{
	for (uint64_t i = 0; i < 20; i++) {
		assert_int_equal(post_recv(&pair->b, i, 0, 5000), 0);
		assert_int_equal(post_send(&pair->a, i, 0, 5000, IBV_SEND_SIGNALED), 0);
		expect_wc(&pair->b, i, IBV_WC_SUCCESS);
		expect_wc(&pair->a, i, IBV_WC_SUCCESS);
	}
}

/* In the child.  No assertions: those jump back into the parent's test runner. */
static int use_what_is_inherited(struct pair *pair)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_recv_wr recv = { 0 }, *bad_recv;
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	int wrong = 0;

	wrong += ibv_poll_cq(pair->a.cq, 1, &wc) > 0;
	wrong += ibv_post_recv(pair->a.qp, &recv, &bad_recv) == 0;
	wrong += ibv_post_send(pair->a.qp, &send, &bad) == 0;
	wrong += to_state(pair->a.qp, IBV_QPS_ERR) == 0;
	wrong += ibv_query_qp(pair->a.qp, &attr, 0, &init) == 0;
	ibv_req_notify_cq(pair->a.cq, 0);
	mr = ibv_reg_mr(pair->a.pd, pair->a.buffer, 100, 0);
	wrong += mr && ibv_dereg_mr(mr) != 0;
	wrong += ibv_destroy_qp(pair->a.qp) != 0;
	wrong += ibv_destroy_qp(pair->b.qp) != 0;
	wrong += ibv_destroy_cq(pair->a.cq) != 0;
	wrong += ibv_destroy_comp_channel(pair->a.channel) != 0;
	wrong += ibv_dereg_mr(pair->a.mr) != 0;
	wrong += ibv_dealloc_pd(pair->a.pd) != 0;
	return wrong;
}

static void a_child_lets_go(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	traffic(&pair);
	for (int i = 0; i < 5; i++) {
		pid_t child = fork();

		if (!child) {
			alarm(CHILD_SECONDS);
			_exit(use_what_is_inherited(&pair));
		}
		traffic(&pair);
		expect_child_ok(child);
		traffic(&pair);
	}
	pair_close(&pair);
}

static atomic_bool stop;

static void *poll_all_the_time(void *arg)
{
	struct pair *pair = arg;
	struct ibv_wc wc;

	while (!atomic_load(&stop))
		ibv_poll_cq(pair->b.cq, 1, &wc);
	return NULL;
}

/* Another thread is inside a call, with locks held, at the moment of the fork. */
static void a_fork_amid_traffic(void **state)
{
	/* 268 ms, so that a fork or a busy processor does not use up the retries. */
	const struct pair_options options = { .timeout = 16 };
	struct pair pair;
	pthread_t thread;

	(void)state;
	pair_open(&pair, &options);
	atomic_store(&stop, false);
	pthread_create(&thread, NULL, poll_all_the_time, &pair);
	for (int i = 0; i < 30; i++) {
		pid_t child;

		assert_int_equal(post_rdma(&pair.a, IBV_WR_RDMA_WRITE, 1, 0, 100000,
					   IBV_SEND_SIGNALED, &pair.b, 0),
				 0);
		child = fork();
		if (!child) {
			alarm(CHILD_SECONDS);
			_exit(use_what_is_inherited(&pair));
		}
		expect_child_ok(child);
		expect_wc(&pair.a, 1, IBV_WC_SUCCESS);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	pair_close(&pair);
}

/*
 * Looked up before threads or children start: at the moment of a fork, a thread that the child does
 * not have may hold the lock of libibverbs' device list.
 */
static struct ibv_device *device;

/* In the child: opens a device again and transfers data between two queue pairs. */
static int open_anew(void)
{
	struct ibv_context *context = ibv_open_device(device);
	struct ibv_pd *pd;
	struct ibv_cq *cq;

	if (!context)
		return 1;
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 10, NULL, NULL, 0);
	if (!pd || !cq)
		return 2;

	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_inline_data = 8 }
	};
	struct ibv_qp *a = ibv_create_qp(pd, &init), *b = ibv_create_qp(pd, &init);
	const struct pair_options none = { 0 };
	struct ibv_recv_wr recv = { .wr_id = 7 }, *bad_recv;
	struct ibv_send_wr send = { .wr_id = 8,
				    .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_wc wc;
	int got = 0;

	if (!a || !b || to_init(a, 0) || to_init(b, 0) || to_rtr(a, b->qp_num, &none) ||
	    to_rtr(b, a->qp_num, &none) || to_rts(a, &none) || to_rts(b, &none))
		return 3;
	if (ibv_post_recv(b, &recv, &bad_recv) || ibv_post_send(a, &send, &bad))
		return 4;
	for (int i = 0; i < 2; i++) {
		do
			got = ibv_poll_cq(cq, 1, &wc);
		while (!got);
		if (got < 0 || wc.status)
			return 5;
	}
	if (ibv_destroy_qp(a) || ibv_destroy_qp(b) || ibv_destroy_cq(cq) || ibv_dealloc_pd(pd) ||
	    ibv_close_device(context))
		return 6;
	return 0;
}

static void a_child_opens_anew(void **state)
{
	struct pair pair;
	pid_t child;

	(void)state;
	device = the_context()->device;
	pair_open(&pair, NULL);
	child = fork();
	if (!child) {
		alarm(CHILD_SECONDS);
		_exit(open_anew());
	}
	traffic(&pair);
	expect_child_ok(child);
	traffic(&pair);
	pair_close(&pair);
}

/* A queue pair that receives at all addresses of the device. */
static int hear_all(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1 };
	int error = ibv_modify_qp(qp, &attr,
				  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

	attr.qp_state = IBV_QPS_RTR;
	return error ? error : ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

static int open_and_hear(void)
{
	struct ibv_context *context = ibv_open_device(device);
	struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
	struct ibv_cq *cq = context ? ibv_create_cq(context, 1, NULL, NULL, 0) : NULL;
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD };
	struct ibv_qp *qp = cq ? ibv_create_qp(pd, &init) : NULL;
	int wrong = !qp || hear_all(qp);

	if (qp)
		wrong += ibv_destroy_qp(qp) || ibv_destroy_cq(cq) || ibv_dealloc_pd(pd) ||
			 ibv_close_device(context);
	return wrong;
}

static void *open_all_the_time(void *arg)
{
	atomic_int *wrong = arg;

	while (!atomic_load(&stop))
		atomic_fetch_add(wrong, open_and_hear() || open_anew());
	return NULL;
}

/* Runs in a process that has no device open but those that its threads open and close. */
static int fork_amid_openings(void)
{
	pthread_t thread[3];
	atomic_int wrong = 0;
	int status;

	atomic_store(&stop, false);
	for (int i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, open_all_the_time, &wrong);
	for (int i = 0; i < 60; i++) {
		pid_t child = fork();

		if (!child) {
			alarm(CHILD_SECONDS);
			_exit(i % 4 ? 0 : open_anew());
		}
		wrong += waitpid(child, &status, 0) != child || status;
	}
	atomic_store(&stop, true);
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	return wrong;
}

static void forks_amid_openings(void **state)
{
	pid_t child;

	(void)state;
#ifdef __SANITIZE_ADDRESS__
	/*
	 * This sanitizer's allocator has locks that it does not take around fork(): a child that
	 * allocates hangs when another thread of its parent had one, in one run of 25.
	 */
	print_message("the address sanitizer's own locks do not outlive a fork\n");
	skip();
#endif
	device = the_context()->device;
	child = fork();
	if (!child) {
		alarm(2 * CHILD_SECONDS);
		_exit(fork_amid_openings() != 0);
	}
	expect_child_ok(child);
}

/* Returns the program's exit code: 0 if a child can read the whole page around a region. */
static int read_beside_a_region(struct pair *pair)
{
	uint8_t *memory = map_pages(2);
	struct ibv_mr *mr;
	pid_t child;
	int status;

	memset(memory, 7, 2 * PAGE);
	mr = reg(pair->a.pd, memory + PAGE / 2, PAGE / 2, ALL_ACCESS);
	child = fork();
	if (!child) {
		alarm(CHILD_SECONDS);
		_exit(memory[0] != 7 || memory[PAGE - 1] != 7 || memory[PAGE] != 7);
	}
	if (waitpid(child, &status, 0) != child)
		return 1;
	if (WIFSIGNALED(status))
		print_error("a child that reads beside a region: signal %d\n", WTERMSIG(status));
	ibv_dereg_mr(mr);
	munmap(memory, 2 * PAGE);
	return status != 0;
}

/* Registers every other page of a mapping. */
static int register_scattered(struct pair *pair)
{
	uint8_t *memory = map_pages(2 * SCATTERED_REGIONS);
	int count = 0, wrong = 0;
	struct ibv_mr **mr = calloc(SCATTERED_REGIONS, sizeof(*mr));

	while (count < SCATTERED_REGIONS) {
		mr[count] = ibv_reg_mr(pair->a.pd, memory + (size_t)count * 2 * PAGE, PAGE, 0);
		if (!mr[count])
			break;
		count++;
	}
	if (count < SCATTERED_REGIONS)
		print_error("%d regions: %s\n", count, strerror(errno));
	for (int i = 0; i < count; i++)
		wrong += ibv_dereg_mr(mr[i]) != 0;
	free(mr);
	munmap(memory, 2 * SCATTERED_REGIONS * (size_t)PAGE);
	return wrong || count < SCATTERED_REGIONS;
}

/*
 * uroce does not pin memory, so ibv_fork_init() must not keep any of it from children.  This is the
 * first test, as programs call ibv_fork_init() before anything else.
 */
static void fork_support_is_unneeded(void **state)
{
	struct pair pair;

	(void)state;
	assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
	assert_int_equal(ibv_fork_init(), 0);
	assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
	pair_open(&pair, NULL);
	assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
	assert_int_equal(read_beside_a_region(&pair), 0);
	assert_int_equal(register_scattered(&pair), 0);
	/* The call also succeeds after memory has been registered. */
	assert_int_equal(ibv_fork_init(), 0);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fork_support_is_unneeded), cmocka_unit_test(a_child_lets_go),
		cmocka_unit_test(a_fork_amid_traffic),	    cmocka_unit_test(a_child_opens_anew),
		cmocka_unit_test(forks_amid_openings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
