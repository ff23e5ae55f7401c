/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Scheduler statistics of a thread whose polls find nothing, and how soon it yields then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "progress/base/poll_yield.h"

static void *run(void *arg)
{
	atomic_bool *over = arg;

	while (!*over)
		;
	return NULL;
}

/*
 * Only sleeps of this thread are counted, not yields to other threads.  The kernel may also put the
 * thread to sleep for a page fault, and need not do so if a timer expires at once.
 */
static void test_sleeps(void **state)
{
	atomic_bool over = false;
	pthread_t other;
	uint64_t before, after_yields;

	(void)state;
	assert_int_equal(pthread_create(&other, NULL, run, &over), 0);
	before = thread_voluntary_switches();
	for (unsigned int i = 0; i < 1000; i++)
		sched_yield();
	after_yields = thread_voluntary_switches();
	assert_uint_in_range(after_yields, before, before + 5);
	for (unsigned int i = 0; i < 10; i++)
		usleep(1000);
	assert_uint_in_range(thread_voluntary_switches(), after_yields + 5, after_yields + 15);
	over = true;
	pthread_join(other, NULL);
}

/* Yields to a ready thread on the same processor are counted as preemptions, not as sleeps. */
static void test_preemptions(void **state)
{
	cpu_set_t before, one;
	atomic_bool over = false;
	uint64_t preemptions, sleeps;
	pthread_t other;

	(void)state;
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(pthread_create(&other, NULL, run, &over), 0);
	sleeps = thread_voluntary_switches();
	preemptions = thread_involuntary_switches();
	/* A single preemption may occur before the other thread is ready, or has had its share. */
	while (thread_involuntary_switches() < preemptions + 5)
		sched_yield();
	assert_int_equal(thread_voluntary_switches(), sleeps);
	over = true;
	pthread_join(other, NULL);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

static uint64_t told_preemptions;
static unsigned int times_asked;

static uint64_t tell_preemptions(void)
{
	times_asked++;
	return told_preemptions;
}

static uint64_t patience_after(struct poll_backoff *backoff, uint64_t took)
{
	poll_backoff_yielded(backoff, took, tell_preemptions);
	return backoff->ns;
}

/* No other thread is ready: a yield is quick, or as slow as system calls are on this machine. */
static void test_patience_alone(void **state)
{
	struct poll_backoff backoff = POLL_BACKOFF_INITIALIZER;

	(void)state;
	times_asked = 0;
	told_preemptions = 0;
	assert_int_equal(backoff.ns, POLL_YIELD_NS);
	assert_int_equal(patience_after(&backoff, 300), POLL_YIELD_NS);
	assert_int_equal(times_asked, 0);
	for (uint64_t took = 1001; took < 100000; took += 1000)
		assert_int_equal(patience_after(&backoff, took), POLL_YIELD_NS);
	/* Switches from before the yield do not belong to it, but count once. */
	told_preemptions = 7;
	assert_int_equal(patience_after(&backoff, 1500), 0);
	assert_int_equal(patience_after(&backoff, 1500), POLL_YIELD_NS);
}

/* Another thread has run during the yield: it may be the one that this thread waits for. */
static void test_patience_shared(void **state)
{
	struct poll_backoff backoff = POLL_BACKOFF_INITIALIZER;

	(void)state;
	for (told_preemptions = 1; told_preemptions < 20; told_preemptions++)
		assert_int_equal(patience_after(&backoff, 10000), 0);
	assert_int_equal(patience_after(&backoff, 300), POLL_YIELD_NS);
}

/*
 * A yield took long: another thread computes, and is not the one that this thread waits for if
 * waits find work in between.  A yield that runs no other thread, as when that one has used up its
 * time slice, changes nothing; a short yield that runs one shows that it does not compute.
 */
static void test_patience_beside_computing(void **state)
{
	struct poll_backoff backoff = POLL_BACKOFF_INITIALIZER;
	uint64_t expected = POLL_YIELD_NS;

	(void)state;
	told_preemptions = 1;
	for (unsigned int i = 0; i < 4; i++) {
		expected *= i < 2 ? 2 : 8;
		backoff.wait_found_work = i >= 2;
		assert_int_equal(patience_after(&backoff, 600000), expected);
		assert_false(backoff.wait_found_work);
		assert_int_equal(patience_after(&backoff, 300), expected);
	}
	backoff.wait_found_work = true;
	assert_int_equal(patience_after(&backoff, 600000), 10000000);
	for (expected = 5000000; expected > POLL_YIELD_NS; expected /= 2) {
		told_preemptions++;
		assert_int_equal(patience_after(&backoff, 10000), expected);
	}
	for (told_preemptions++; backoff.ns > 0; told_preemptions++)
		patience_after(&backoff, 10000);
	assert_int_equal(patience_after(&backoff, 600000), 2 * POLL_YIELD_NS);
}

/* Other threads poll as well: waits find no work, and get shorter each time. */
static void test_patience_beside_pollers(void **state)
{
	struct poll_backoff backoff = { .ns = 10000000 };

	(void)state;
	for (uint64_t expected = 5000000; expected >= 20000; expected /= 2)
		assert_int_equal(patience_after(&backoff, 70000000), expected);
	for (unsigned int i = 0; i < 100; i++)
		assert_uint_in_range(patience_after(&backoff, 600000), 9765, 40000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sleeps),
		cmocka_unit_test(test_preemptions),
		cmocka_unit_test(test_patience_alone),
		cmocka_unit_test(test_patience_shared),
		cmocka_unit_test(test_patience_beside_computing),
		cmocka_unit_test(test_patience_beside_pollers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
