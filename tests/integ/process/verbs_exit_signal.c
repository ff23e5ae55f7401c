/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * exit() in a signal handler, as in programs that the user interrupts: the process exits, although
 * ACKs are pending, and although the interrupted thread holds a lock; here it is registering
 * memory.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_fixture.h"

enum {
	PROCESSES = 40,
	EXCHANGES = 8,
	RECEIVE_ID = 7,
	SEND_ID = 5,
	LENGTH = 64,
};

/* At exit() the leak checker takes the allocator's locks; the interrupted thread may hold one. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);

int __lsan_is_turned_off(void)
{
	return 1;
}

static void end_now(int number)
{
	(void)number;
	exit(0);
}

static void post_unsignaled(struct verbs_fixture *fixture, struct ibv_qp *qp)
{
	struct ibv_sge sge = fixture_sge(fixture, 0, LENGTH);
	struct ibv_send_wr wr = { .wr_id = SEND_ID,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND },
			   *bad;

	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
}

/* Transfers one unsignaled SEND; the CQ gets the completion of the receive and no other. */
static void send_one(struct verbs_fixture *fixture, struct ibv_qp *from, struct ibv_qp *to)
{
	assert_int_equal(fixture_post_recv(fixture, to, RECEIVE_ID, LENGTH, LENGTH), 0);
	post_unsignaled(fixture, from);
	fixture_expect(fixture->cq, RECEIVE_ID, IBV_WC_SUCCESS);
}

/* Leaves an ACK pending: an end that has replied to each message delays its next ACK. */
static void owe_an_ack(struct verbs_fixture *fixture, struct ibv_qp *a, struct ibv_qp *b)
{
	for (int i = 0; i < EXCHANGES; i++) {
		send_one(fixture, a, b);
		send_one(fixture, b, a);
	}
	send_one(fixture, a, b);
}

static _Noreturn void child(int number)
{
	const struct itimerval soon = { .it_value.tv_usec = 100 + 20 * number };
	struct ibv_qp *a, *b;
	struct verbs_fixture fixture;

	fixture_open_pair(&fixture, &a, &b);
	signal(SIGALRM, end_now);
	owe_an_ack(&fixture, a, b);
	assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
	for (;;) {
		struct ibv_mr *mr = ibv_reg_mr(fixture.pd, fixture.bytes, LENGTH, 0);

		assert_non_null(mr);
		assert_int_equal(ibv_dereg_mr(mr), 0);
	}
}

static void it_ends(void **state)
{
	(void)state;
	for (int i = 0; i < PROCESSES; i++) {
		pid_t process = fork();
		int status = -1, waited = 0;

		if (process == 0)
			child(i);
		while (waitpid(process, &status, WNOHANG) == 0 && waited++ < 2 * PATIENCE_MS)
			usleep(1000);
		if (waited > 2 * PATIENCE_MS)
			kill(process, SIGKILL);
		assert_int_equal(status, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(it_ends) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
