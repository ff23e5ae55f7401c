/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Deferred work (work.h): work_flush() waits for it and loses no scheduled work.  If no thread can
 * be started the callers do the work, one at a time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

#include "link/thread.h"
#include "progress/base/work.h"

static sem_t begun, may_end;
static atomic_uint done, working, most_working;
static atomic_bool no_threads;

/* Replaces the function of link/thread.c. */
int thread_start(pthread_t *thread, const char *name, void *(*function)(void *arg), void *arg)
{
	(void)name;
	return atomic_load(&no_threads) ? -EAGAIN : -pthread_create(thread, NULL, function, arg);
}

static void work(void)
{
	unsigned int now = atomic_fetch_add(&working, 1) + 1;

	if (now > atomic_load(&most_working))
		atomic_store(&most_working, now);
	sem_post(&begun);
	sem_wait(&may_end);
	atomic_fetch_sub(&working, 1);
	atomic_fetch_add(&done, 1);
}

static struct work aside = WORK_INITIALIZER(work);
static atomic_uint finishers;

static void *finish(void *arg)
{
	(void)arg;
	atomic_fetch_add(&finishers, 1);
	work_flush(&aside);
	/* Number of times that the work has been done by then. */
	return (void *)(uintptr_t)atomic_load(&done);
}

static int setup(void **state)
{
	(void)state;
	sem_init(&begun, 0, 0);
	sem_init(&may_end, 0, 0);
	atomic_store(&done, 0);
	atomic_store(&most_working, 0);
	atomic_store(&no_threads, false);
	atomic_store(&finishers, 0);
	return 0;
}

static void begin_to_finish(pthread_t *thread)
{
	unsigned int before = atomic_load(&finishers);

	assert_int_equal(pthread_create(thread, NULL, finish, NULL), 0);
	while (atomic_load(&finishers) == before)
		usleep(100);
	/* Time for the thread to begin its wait, which no event shows. */
	usleep(5000);
}

static unsigned int finished(pthread_t thread)
{
	void *seen;

	assert_int_equal(pthread_join(thread, &seen), 0);
	return (uintptr_t)seen;
}

static void test_finish_waits(void **state)
{
	pthread_t thread;

	(void)state;
	work_schedule(&aside);
	sem_wait(&begun);
	begin_to_finish(&thread);
	sem_post(&may_end);
	assert_int_equal(finished(thread), 1);
}

/* Two contexts may be closed at once. */
static void test_two_finish(void **state)
{
	pthread_t threads[2];

	(void)state;
	work_schedule(&aside);
	sem_wait(&begun);
	begin_to_finish(&threads[0]);
	begin_to_finish(&threads[1]);
	sem_post(&may_end);
	assert_int_equal(finished(threads[0]), 1);
	assert_int_equal(finished(threads[1]), 1);
}

/*
 * Work that is scheduled while it runs is done again before work_flush() returns; otherwise another
 * user would miss changes.
 */
static void test_finish_loses_nothing(void **state)
{
	pthread_t thread;

	(void)state;
	work_schedule(&aside);
	sem_wait(&begun);
	work_schedule(&aside);
	begin_to_finish(&thread);
	sem_post(&may_end);
	sem_post(&may_end);
	assert_int_equal(finished(thread), 2);
}

static void test_wanted_while_finishing(void **state)
{
	pthread_t thread;

	(void)state;
	work_schedule(&aside);
	sem_wait(&begun);
	begin_to_finish(&thread);
	work_schedule(&aside);
	sem_post(&may_end);
	sem_post(&may_end);
	assert_int_equal(finished(thread), 2);
	/* Afterwards work can be scheduled again. */
	work_schedule(&aside);
	sem_post(&may_end);
	work_flush(&aside);
	assert_int_equal(atomic_load(&done), 3);
}

static void *want(void *arg)
{
	(void)arg;
	work_schedule(&aside);
	return NULL;
}

/* If no thread can be started, the first caller does the work, including that of others. */
static void test_no_thread(void **state)
{
	pthread_t first, second;

	(void)state;
	atomic_store(&no_threads, true);
	assert_int_equal(pthread_create(&first, NULL, want, NULL), 0);
	sem_wait(&begun);
	assert_int_equal(pthread_create(&second, NULL, want, NULL), 0);
	usleep(20000);
	for (int i = 0; i < 3; i++)
		sem_post(&may_end);
	assert_int_equal(pthread_join(first, NULL), 0);
	assert_int_equal(pthread_join(second, NULL), 0);
	assert_int_equal(atomic_load(&done), 2);
	assert_int_equal(atomic_load(&most_working), 1);
	/* Once threads can be started again, a thread does the work. */
	atomic_store(&no_threads, false);
	work_schedule(&aside);
	work_flush(&aside);
	assert_int_equal(atomic_load(&done), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_finish_waits, setup),
		cmocka_unit_test_setup(test_two_finish, setup),
		cmocka_unit_test_setup(test_finish_loses_nothing, setup),
		cmocka_unit_test_setup(test_wanted_while_finishing, setup),
		cmocka_unit_test_setup(test_no_thread, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
