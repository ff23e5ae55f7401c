/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Work that a thread of its own does: aside_finish() waits for it, and loses nothing wanted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

#include "progress/aside.h"

static sem_t begun, may_end;
static atomic_uint done;

static void work(void)
{
	sem_post(&begun);
	sem_wait(&may_end);
	atomic_fetch_add(&done, 1);
}

static struct aside aside = ASIDE_INITIALIZER(work);
static atomic_uint finishers;

static void *finish(void *arg)
{
	(void)arg;
	atomic_fetch_add(&finishers, 1);
	aside_finish(&aside);
	/* What has been done by then. */
	return (void *)(uintptr_t)atomic_load(&done);
}

static int setup(void **state)
{
	(void)state;
	sem_init(&begun, 0, 0);
	sem_init(&may_end, 0, 0);
	atomic_store(&done, 0);
	atomic_store(&finishers, 0);
	return 0;
}

static void begin_to_finish(pthread_t *thread)
{
	assert_int_equal(pthread_create(thread, NULL, finish, NULL), 0);
	while (!atomic_load(&finishers))
		usleep(100);
	/* Until it waits, which nothing tells. */
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
	aside_want(&aside);
	sem_wait(&begun);
	begin_to_finish(&thread);
	sem_post(&may_end);
	assert_int_equal(finished(thread), 1);
}

/* Another user may have begun meanwhile, and would miss what has changed. */
static void test_finish_loses_nothing(void **state)
{
	pthread_t thread;

	(void)state;
	aside_want(&aside);
	sem_wait(&begun);
	aside_want(&aside);
	begin_to_finish(&thread);
	sem_post(&may_end);
	sem_post(&may_end);
	assert_int_equal(finished(thread), 2);
}

static void test_wanted_while_finishing(void **state)
{
	pthread_t thread;

	(void)state;
	aside_want(&aside);
	sem_wait(&begun);
	begin_to_finish(&thread);
	aside_want(&aside);
	sem_post(&may_end);
	sem_post(&may_end);
	assert_int_equal(finished(thread), 2);
	/* And it is as at first. */
	aside_want(&aside);
	sem_post(&may_end);
	aside_finish(&aside);
	assert_int_equal(atomic_load(&done), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_finish_waits, setup),
		cmocka_unit_test_setup(test_finish_loses_nothing, setup),
		cmocka_unit_test_setup(test_wanted_while_finishing, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
