/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * More threads than processors are in the middle of a post at the same moment: none allocates
 * memory, and requests for which no transmit buffer is free are sent by a progress cycle.
 */
#include "progress_end.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "link_child.h"

enum {
	/* More than there are transmit buffers on any machine. */
	POSTERS = 80,
	ROUNDS = 20,
	BYTES = 100,
};

static atomic_bool counting;
static atomic_uint allocations;

/*
 * Counts calls of the C library's allocator.  A sanitizer replaces the allocator, and then only the
 * traffic is checked.
 */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__GLIBC__)
#define COUNTS 1
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

static void count(void)
{
	if (atomic_load(&counting))
		atomic_fetch_add(&allocations, 1);
}

void *malloc(size_t bytes)
{
	count();
	return __libc_malloc(bytes);
}

void *calloc(size_t number, size_t bytes)
{
	count();
	return __libc_calloc(number, bytes);
}

void *realloc(void *memory, size_t bytes)
{
	count();
	return __libc_realloc(memory, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
	count();
	return __libc_memalign(alignment, bytes);
}
#else
#define COUNTS 0
#endif

static struct progress_end a[POSTERS], b[POSTERS];
static uint8_t from[BYTES], to[POSTERS][BYTES];
static pthread_barrier_t together;
static atomic_uint inside, returned, refused;
static atomic_bool open_gate;
static __thread bool posting;

/*
 * Called in the middle of a post.  Waits until all other threads are here as well, or have returned
 * from their posts without getting here.
 */
static void wait_at_gate(void)
{
	if (!posting)
		return;
	posting = false;
	atomic_fetch_add(&inside, 1);
	while (!atomic_load(&open_gate))
		usleep(100);
}

static void *post_one(void *arg)
{
	size_t i = (size_t)(uintptr_t)arg;

	for (int round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(&together);
		posting = true;
		if (!end_write(&a[i], from, BYTES, to[i]))
			atomic_fetch_add(&refused, 1);
		if (posting)
			atomic_fetch_add(&returned, 1);
		posting = false;
		pthread_barrier_wait(&together);
	}
	return NULL;
}

static void one_round(unsigned int round)
{
	atomic_store(&inside, 0);
	atomic_store(&returned, 0);
	atomic_store(&open_gate, false);
	atomic_store(&counting, true);
	pthread_barrier_wait(&together);
	while (atomic_load(&inside) + atomic_load(&returned) < POSTERS)
		usleep(100);
	atomic_store(&open_gate, true);
	pthread_barrier_wait(&together);
	for (int i = 0; i < POSTERS; i++)
		assert_true(end_wait_for(&a[i].sent, round + 1));
	atomic_store(&counting, false);
}

static void test_no_allocation(void **state)
{
	struct progress *progress = get_progress();
	pthread_t thread[POSTERS];

	(void)state;
	memset(from, 7, sizeof(from));
	pthread_barrier_init(&together, NULL, POSTERS + 1);
	for (int i = 0; i < POSTERS; i++)
		end_pair(&a[i], &b[i], progress);
	end_mapping = wait_at_gate;
	for (uintptr_t i = 0; i < POSTERS; i++)
		pthread_create(&thread[i], NULL, post_one, (void *)i);
	for (unsigned int round = 0; round < ROUNDS; round++)
		one_round(round);
	for (int i = 0; i < POSTERS; i++)
		pthread_join(thread[i], NULL);
	end_mapping = NULL;
	if (COUNTS)
		assert_int_equal(atomic_load(&allocations), 0);
	assert_int_equal(atomic_load(&refused), 0);
	for (int i = 0; i < POSTERS; i++) {
		assert_int_equal(a[i].failed, 0);
		assert_memory_equal(to[i], from, BYTES);
		end_close(&a[i]);
		end_close(&b[i]);
	}
	pthread_barrier_destroy(&together);
	progress_put(progress);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_allocation),
	};

	return cmocka_run_group_tests(tests, enter_new_netns, NULL);
}
