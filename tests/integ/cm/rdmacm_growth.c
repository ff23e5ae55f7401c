/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Thousands of ids of one process: the time per id does not grow with their number.
 */
#include "rdmacm_end.h"

#include <arpa/inet.h>
#include <stdlib.h>

#include "growth.h"

enum { MOST = 24000 };

static struct rdma_event_channel *channel;
static struct rdma_cm_id *ids[MOST];
static struct sockaddr_in loopback = { .sin_family = AF_INET };

static void create_ids(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		assert_return_code(rdma_create_id(channel, &ids[i], NULL, RDMA_PS_TCP), errno);
}

static void destroy_ids(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		assert_return_code(rdma_destroy_id(ids[i]), errno);
}

/* Binds the ids to ports that the library chooses. */
static uint64_t bound(unsigned int count)
{
	uint64_t begin = used_ns();

	create_ids(count);
	for (unsigned int i = 0; i < count; i++)
		assert_return_code(rdma_bind_addr(ids[i], (struct sockaddr *)&loopback), errno);
	destroy_ids(count);
	return used_ns() - begin;
}

static void ids_are_bound_and_destroyed(void **state)
{
	(void)state;
	assert_linear(1500, bound);
}

/* Each id has an event that has not been read. */
static uint64_t resolved(unsigned int count)
{
	uint64_t begin;

	create_ids(count);
	for (unsigned int i = 0; i < count; i++)
		assert_return_code(
			rdma_resolve_addr(ids[i], NULL, (struct sockaddr *)&loopback, PATIENCE_MS),
			errno);
	begin = used_ns();
	destroy_ids(count);
	return used_ns() - begin;
}

static void ids_with_unread_events_are_destroyed(void **state)
{
	(void)state;
	assert_linear(500, resolved);
}

static int open_channel(void **state)
{
	(void)state;
	loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	channel = rdma_create_event_channel();
	return channel ? 0 : -1;
}

static int close_channel(void **state)
{
	(void)state;
	rdma_destroy_event_channel(channel);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_are_bound_and_destroyed),
		cmocka_unit_test(ids_with_unread_events_are_destroyed),
	};

	return cmocka_run_group_tests(tests, open_channel, close_channel);
}
