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

#include "progress/poller.h"

static void *run(void *arg)
{
	atomic_bool *over = arg;

	while (!*over)
		;
	return NULL;
}

/* Only those of this thread, and no time in which others had the processor. */
static void test_sleeps(void **state)
{
	atomic_bool over = false;
	pthread_t other;
	uint64_t before;

	(void)state;
	assert_int_equal(pthread_create(&other, NULL, run, &over), 0);
	before = poller_sleeps();
	for (unsigned int i = 0; i < 1000; i++)
		sched_yield();
	assert_int_equal(poller_sleeps(), before);
	for (unsigned int i = 0; i < 10; i++)
		usleep(1000);
	assert_int_equal(poller_sleeps(), before + 10);
	over = true;
	pthread_join(other, NULL);
}

/* A ready thread on the same processor runs in between; this thread has not slept. */
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
	sleeps = poller_sleeps();
	preemptions = poller_preemptions();
	/* One of them alone may come before the other thread is ready, or has had its share. */
	while (poller_preemptions() < preemptions + 5)
		sched_yield();
	assert_int_equal(poller_sleeps(), sleeps);
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

static uint64_t patience_after(struct poller_patience *patience, uint64_t took)
{
	poller_yielded(patience, took, tell_preemptions);
	return patience->ns;
}

/* Nobody else is ready: a yield is quick, or as slow as system calls are on this machine. */
static void test_patience_alone(void **state)
{
	struct poller_patience patience = POLLER_PATIENCE;

	(void)state;
	times_asked = 0;
	told_preemptions = 0;
	assert_int_equal(patience.ns, POLLER_PATIENCE_NS);
	assert_int_equal(patience_after(&patience, 300), POLLER_PATIENCE_NS);
	assert_int_equal(times_asked, 0);
	for (uint64_t took = 1001; took < 100000; took += 1000)
		assert_int_equal(patience_after(&patience, took), POLLER_PATIENCE_NS);
	/* Switches from before do not belong to the yield, but count once. */
	told_preemptions = 7;
	assert_int_equal(patience_after(&patience, 1500), 0);
	assert_int_equal(patience_after(&patience, 1500), POLLER_PATIENCE_NS);
}

/* Another one has had the processor: it may be the one that is waited for. */
static void test_patience_shared(void **state)
{
	struct poller_patience patience = POLLER_PATIENCE;

	(void)state;
	for (told_preemptions = 1; told_preemptions < 20; told_preemptions++)
		assert_int_equal(patience_after(&patience, 10000), 0);
	assert_int_equal(patience_after(&patience, 300), POLLER_PATIENCE_NS);
}

/*
 * Another thread has used the processor for long: it computes, and is not waited for, if waits find
 * work in between.  Yields without another ready thread, as when it has used up its time slice, do
 * not show that; a short yield shows that it does not compute.
 */
static void test_patience_beside_computing(void **state)
{
	struct poller_patience patience = POLLER_PATIENCE;
	uint64_t expected = POLLER_PATIENCE_NS;

	(void)state;
	told_preemptions = 1;
	for (unsigned int i = 0; i < 4; i++) {
		expected *= i < 2 ? 2 : 8;
		patience.paid = i >= 2;
		assert_int_equal(patience_after(&patience, 600000), expected);
		assert_false(patience.paid);
		assert_int_equal(patience_after(&patience, 300), expected);
	}
	patience.paid = true;
	assert_int_equal(patience_after(&patience, 600000), 10000000);
	for (expected = 5000000; expected > POLLER_PATIENCE_NS; expected /= 2) {
		told_preemptions++;
		assert_int_equal(patience_after(&patience, 10000), expected);
	}
	for (told_preemptions++; patience.ns > 0; told_preemptions++)
		patience_after(&patience, 10000);
	assert_int_equal(patience_after(&patience, 600000), 2 * POLLER_PATIENCE_NS);
}

/* Other threads poll as well: waits find no work, and get shorter each time. */
static void test_patience_beside_pollers(void **state)
{
	struct poller_patience patience = { .ns = 10000000 };

	(void)state;
	for (uint64_t expected = 5000000; expected >= 20000; expected /= 2)
		assert_int_equal(patience_after(&patience, 70000000), expected);
	for (unsigned int i = 0; i < 100; i++)
		assert_uint_in_range(patience_after(&patience, 600000), 9765, 40000);
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
