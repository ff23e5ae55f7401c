/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Programs end their threads with pthread_cancel() (iperf3 does).  Calls that post, poll and arm,
 * and those that create, change and destroy objects, must not be cancellation points: a thread that
 * ended in one would leave locks held, and the process would hang.
 */
#include <pthread.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "verbs_pair.h"

enum {
	ROUNDS = 20,
	LENGTH = 100,
	/* Longer than the helper thread waits for the next poll. */
	IDLE_US = 10000,
	PATIENCE_S = 10,
};

static struct pair pair;
static const struct pair_options options = { .timeout = 15 };

/* Transfers a message, with a completion event at the receiver. */
static bool exchange(void)
{
	struct ibv_wc wc;
	unsigned int got = 0;
	time_t until = time(NULL) + PATIENCE_S;

	if (ibv_req_notify_cq(pair.b.cq, 0) || post_recv(&pair.b, 1, 0, LENGTH) ||
	    post_send(&pair.a, 2, 0, LENGTH, IBV_SEND_SIGNALED))
		return false;
	while (got < 2 && time(NULL) < until) {
		got += ibv_poll_cq(pair.a.cq, 1, &wc) > 0;
		got += ibv_poll_cq(pair.b.cq, 1, &wc) > 0;
	}
	return got == 2;
}

/* This thread cancels itself before the transfer, and ends at the first cancellation point. */
static void *cancelled(void *arg)
{
	bool *over = arg;

	pthread_cancel(pthread_self());
	*over = exchange();
	pthread_testcancel();
	return NULL;
}

static void test_no_cancellation_point(void **state)
{
	struct ibv_cq *cq;
	pthread_t thread;
	void *result;

	(void)state;
	pair_open(&pair, &options);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		bool over = false;

		usleep(IDLE_US);
		assert_int_equal(pthread_create(&thread, NULL, cancelled, &over), 0);
		assert_int_equal(pthread_join(thread, &result), 0);
		assert_ptr_equal(result, PTHREAD_CANCELED);
		assert_true(over);
		/* The event has been raised, and the process continues. */
		assert_int_equal(ibv_get_cq_event(pair.b.channel, &cq, &result), 0);
		ibv_ack_cq_events(cq, 1);
	}
	pair_close(&pair);
}

/* Creates and destroys all objects of a pair of queue pairs, from the protection domain on. */
static void *cancelled_in_control(void *arg)
{
	struct pair other;
	bool *over = arg;

	pthread_cancel(pthread_self());
	pair_open(&other, &options);
	pair_close(&other);
	*over = true;
	pthread_testcancel();
	return NULL;
}

static void test_no_cancellation_point_in_control(void **state)
{
	bool over = false;
	pthread_t thread;
	void *result;

	(void)state;
	the_context();
	assert_int_equal(pthread_create(&thread, NULL, cancelled_in_control, &over), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_true(over);
	pair_open(&pair, &options);
	assert_true(exchange());
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_cancellation_point),
		cmocka_unit_test(test_no_cancellation_point_in_control),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
