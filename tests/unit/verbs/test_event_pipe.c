/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Pipes that carry events to the application: order, removal of the events of a destroyed object,
 * more events than a pipe holds, and a concurrent reader.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

#include "verbs/cq/cq.h"
#include "verbs/cq/event_pipe.h"
#include "verbs/context/context.h"

static int read_end, write_end;

static int open_pipe(void **state)
{
	(void)state;
	return event_pipe_open(&read_end, &write_end);
}

static int close_pipe(void **state)
{
	(void)state;
	close(read_end);
	close(write_end);
	return 0;
}

static void push(uint64_t record)
{
	assert_int_equal(event_pipe_push(write_end, &record, sizeof(record)), 0);
}

static bool is_odd(const void *record, const void *arg)
{
	(void)arg;
	return *(const uint64_t *)record & 1;
}

static bool is_waiting(void)
{
	struct pollfd wait = { .fd = read_end, .events = POLLIN };

	return poll(&wait, 1, 0) == 1;
}

static uint64_t pop(void)
{
	uint64_t record;

	assert_true(is_waiting());
	assert_int_equal(read(read_end, &record, sizeof(record)), sizeof(record));
	return record;
}

static void records_are_taken_back_and_the_others_keep_their_order(void **state)
{
	uint64_t i;

	(void)state;
	for (i = 0; i < 3000; i++)
		push(i);
	event_pipe_purge(read_end, write_end, sizeof(uint64_t), is_odd, NULL);
	for (i = 0; i < 3000; i += 2)
		assert_int_equal(pop(), i);
	assert_false(is_waiting());
}

/*
 * A program that closes descriptors which it does not know (closefrom(3)) may close the one that
 * events are read from: the thread that raises the next event must not be killed by SIGPIPE.
 */
static void nobody_dies_of_a_reader_that_is_gone(void **state)
{
	uint64_t record = 1;

	(void)state;
	close(read_end);
	for (int i = 0; i < 1000; i++)
		event_pipe_push(write_end, &record, sizeof(record));
	read_end = dup(write_end); /* for close_pipe() */
}

/* The descriptor is in blocking mode, and nothing will be written, so a read would not return. */
static void purging_an_empty_pipe_does_not_wait(void **state)
{
	(void)state;
	assert_false(fcntl(read_end, F_GETFL) & O_NONBLOCK);
	event_pipe_purge(read_end, write_end, sizeof(uint64_t), is_odd, NULL);
	push(1);
	event_pipe_purge(read_end, write_end, sizeof(uint64_t), is_odd, NULL);
	assert_false(is_waiting());
}

static void a_full_pipe_grows_and_at_last_refuses(void **state)
{
	uint64_t i, pushed = 0, other = 2;

	(void)state;
	while (event_pipe_push(write_end, &other, sizeof(other)) == 0)
		pushed++;
	/* Twice the maximum number of CQs, unless this host limits the size of a pipe to less. */
	if (fcntl(write_end, F_GETPIPE_SZ) >= 1 << 20)
		assert_true(pushed >= 131072);
	assert_int_equal(event_pipe_push(write_end, &other, sizeof(other)), ENOBUFS);
	event_pipe_purge(read_end, write_end, sizeof(uint64_t), is_odd, NULL);
	for (i = 0; i < pushed; i++)
		pop();
	assert_false(is_waiting());
}

#define EVEN_RECORDS 100000

/* Reads every even number once; odd numbers may be purged before they are read. */
static void *read_all(void *arg)
{
	uint64_t record, *sum = arg;
	unsigned int even = 0;

	while (even < EVEN_RECORDS && read(read_end, &record, sizeof(record)) == sizeof(record)) {
		if (record & 1)
			continue;
		*sum += record;
		even++;
	}
	return NULL;
}

static void nothing_is_lost_to_a_reader_at_the_same_time(void **state)
{
	uint64_t i, sum = 0, expected = 0;
	pthread_t reader;

	(void)state;
	assert_int_equal(pthread_create(&reader, NULL, read_all, &sum), 0);
	for (i = 0; i < EVEN_RECORDS; i++) {
		expected += i * 2;
		while (event_pipe_push(write_end, &(uint64_t){ i * 2 }, sizeof(i)))
			sched_yield();
		event_pipe_push(write_end, &(uint64_t){ 1 }, sizeof(i));
		if (i % 64 == 0)
			event_pipe_purge(read_end, write_end, sizeof(i), is_odd, NULL);
	}
	pthread_join(reader, NULL);
	assert_int_equal(sum, expected);
}

static void a_channel_names_the_cq(void **state)
{
	static struct uroce_context context;
	struct ib_uverbs_comp_event_desc event;
	struct uroce_comp_channel *ours;
	struct ibv_comp_channel *channel;
	static struct uroce_cq first, second;

	(void)state;
	pthread_mutex_init(&context.base.context.mutex, NULL);
	channel = uroce_create_comp_channel(&context.base.context);
	assert_non_null(channel);
	ours = (struct uroce_comp_channel *)channel;
	uroce_channel_event(ours, &first);
	uroce_channel_event(ours, &second);
	uroce_channel_purge(ours, &first);
	assert_int_equal(read(channel->fd, &event, sizeof(event)), sizeof(event));
	assert_ptr_equal((void *)(uintptr_t)event.cq_handle, &second);
	channel->refcnt = 1;
	assert_int_equal(uroce_destroy_comp_channel(channel), EBUSY);
	channel->refcnt = 0;
	assert_int_equal(uroce_destroy_comp_channel(channel), 0);
}

static void an_async_event_names_its_element(void **state)
{
	struct uroce_context *context = calloc(1, sizeof(*context));
	struct ib_uverbs_async_event_desc event;
	int going, staying;

	(void)state;
	assert_non_null(context);
	assert_int_equal(uroce_async_open(context), 0);
	uroce_async_event(context, IBV_EVENT_QP_FATAL, &going);
	uroce_async_event(context, IBV_EVENT_PORT_ERR, (void *)(uintptr_t)UROCE_PORT);
	uroce_async_event(context, IBV_EVENT_COMM_EST, &staying);
	uroce_async_purge(context, &going);
	read_end = context->base.context.async_fd;
	assert_int_equal(read(read_end, &event, sizeof(event)), sizeof(event));
	assert_int_equal(event.event_type, IBV_EVENT_PORT_ERR);
	assert_int_equal(event.element, 1);
	assert_int_equal(read(read_end, &event, sizeof(event)), sizeof(event));
	assert_int_equal(event.event_type, IBV_EVENT_COMM_EST);
	assert_ptr_equal((void *)(uintptr_t)event.element, &staying);
	assert_false(is_waiting());
	uroce_async_close(context);
	free(context);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			records_are_taken_back_and_the_others_keep_their_order, open_pipe,
			close_pipe),
		cmocka_unit_test_setup_teardown(nobody_dies_of_a_reader_that_is_gone, open_pipe,
						close_pipe),
		cmocka_unit_test_setup_teardown(purging_an_empty_pipe_does_not_wait, open_pipe,
						close_pipe),
		cmocka_unit_test_setup_teardown(a_full_pipe_grows_and_at_last_refuses, open_pipe,
						close_pipe),
		cmocka_unit_test_setup_teardown(nothing_is_lost_to_a_reader_at_the_same_time,
						open_pipe, close_pipe),
		cmocka_unit_test(a_channel_names_the_cq),
		cmocka_unit_test(an_async_event_names_its_element),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
