/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What is told of the thread that polls: whether it wants a processor, and how often it has slept.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "progress/poller.h"

struct thread {
	struct poller poller;
	int pipe[2];
	atomic_bool is_known, over;
	bool sleeps;
};

/* Under a name that is made to be mistaken for the end of a name and a state. */
static void *poll_or_sleep(void *arg)
{
	struct thread *thread = arg;
	char byte;

	prctl(PR_SET_NAME, ") R 1 (x) S");
	poller_is_me(&thread->poller);
	thread->is_known = true;
	if (thread->sleeps)
		return read(thread->pipe[0], &byte, 1) == 1 ? NULL : arg;
	while (!thread->over)
		;
	return NULL;
}

static pthread_t start(struct thread *thread, bool sleeps)
{
	pthread_t id;

	*thread = (struct thread){ .sleeps = sleeps };
	assert_int_equal(pipe(thread->pipe), 0);
	assert_false(poller_wants_to_run(&thread->poller));
	assert_int_equal(pthread_create(&id, NULL, poll_or_sleep, thread), 0);
	while (!thread->is_known)
		usleep(100);
	return id;
}

static void end(struct thread *thread, pthread_t id)
{
	void *result;

	thread->over = true;
	assert_int_equal(write(thread->pipe[1], "", 1), 1);
	assert_int_equal(pthread_join(id, &result), 0);
	assert_null(result);
	close(thread->pipe[0]);
	close(thread->pipe[1]);
	/* The kernel may take a moment to forget it. */
	for (unsigned int i = 0; i < 1000 && poller_wants_to_run(&thread->poller); i++)
		usleep(1000);
	assert_false(poller_wants_to_run(&thread->poller));
}

static void test_one_that_runs(void **state)
{
	struct thread thread;
	pthread_t id = start(&thread, false);

	(void)state;
	for (unsigned int i = 0; i < 100; i++)
		assert_true(poller_wants_to_run(&thread.poller));
	end(&thread, id);
}

static void test_one_that_sleeps(void **state)
{
	struct thread thread;
	pthread_t id = start(&thread, true);

	(void)state;
	for (unsigned int i = 0; i < 1000 && poller_wants_to_run(&thread.poller); i++)
		usleep(1000);
	for (unsigned int i = 0; i < 100; i++)
		assert_false(poller_wants_to_run(&thread.poller));
	end(&thread, id);
}

/* Only those of this thread, and no time in which others had the processor. */
static void test_sleeps(void **state)
{
	struct thread other;
	pthread_t id = start(&other, false);
	uint64_t before = poller_sleeps();

	(void)state;
	for (unsigned int i = 0; i < 1000; i++)
		sched_yield();
	assert_int_equal(poller_sleeps(), before);
	for (unsigned int i = 0; i < 10; i++)
		usleep(1000);
	assert_int_equal(poller_sleeps(), before + 10);
	end(&other, id);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_that_runs),
		cmocka_unit_test(test_one_that_sleeps),
		cmocka_unit_test(test_sleeps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
