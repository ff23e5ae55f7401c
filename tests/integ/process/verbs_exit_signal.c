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

#include "verbs_box.h"

enum {
	PROCESSES = 40,
	EXCHANGES = 8,
	RECEIVE_ID = 7,
	SEND_ID = 5,
	LENGTH = 64,
};

/* The leak checker takes the allocator's locks at exit(), and the signal may have come to one. */
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

static void post_unsignaled(struct box *box, struct ibv_qp *qp)
{
	struct ibv_sge sge = box_sge(box, 0, LENGTH);
	struct ibv_send_wr wr = { .wr_id = SEND_ID,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND },
			   *bad;

	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
}

/* One SEND from here to there; the CQ has the receive and nothing else. */
static void send_one(struct box *box, struct ibv_qp *from, struct ibv_qp *to)
{
	assert_int_equal(box_post_recv(box, to, RECEIVE_ID, LENGTH, LENGTH), 0);
	post_unsignaled(box, from);
	box_expect(box->cq, RECEIVE_ID, IBV_WC_SUCCESS);
}

/* An end that has answered each message holds back its ACK, so that one is owed. */
static void owe_an_ack(struct box *box, struct ibv_qp *a, struct ibv_qp *b)
{
	for (int i = 0; i < EXCHANGES; i++) {
		send_one(box, a, b);
		send_one(box, b, a);
	}
	send_one(box, a, b);
}

static _Noreturn void child(int number)
{
	const struct itimerval soon = { .it_value.tv_usec = 100 + 20 * number };
	struct ibv_qp *a, *b;
	struct box box;

	box_open_pair(&box, &a, &b);
	signal(SIGALRM, end_now);
	owe_an_ack(&box, a, b);
	assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
	for (;;) {
		struct ibv_mr *mr = ibv_reg_mr(box.pd, box.bytes, LENGTH, 0);

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
