/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* How often a thread that polls has slept. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sleeps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
