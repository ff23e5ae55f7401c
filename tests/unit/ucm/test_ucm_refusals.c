/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Requests that are rejected at first, and are then repeated or fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <time.h>

#include "ucm_fixture.h"
#include "memory.h"
#include "ucm/ucm_core.h"

#define MS (SECOND / 1000)

/* A request whose path MTU is too large for the server is repeated with an MTU that fits. */
static void path_mtu(void **state)
{
	struct ib_uverbs_qp_attr active, passive;
	struct rdma_ucm_event_resp event;
	struct ucm_fixture fixture;

	(void)state;
	ucm_fixture_open(&fixture, RDMA_PS_TCP, 3);
	fixture.active = prepare_client(&fixture, RDMA_PS_TCP, "10.0.0.1", PORT);
	world_set_mtu(3);
	assert_int_equal(connect_id(fixture.client, fixture.active, NULL, 0), 0);
	assert_int_equal(world_deliver(), 2);
	expect_no_event(fixture.server);
	expect_no_event(fixture.client);
	world_pass(SECOND / 100);
	world_deliver();
	assert_int_equal(get_event(fixture.server, &event), 0);
	assert_int_equal(event.event, CONNECT_REQUEST);
	assert_int_equal(accept_id(fixture.server, event.id, SERVER_UID, NULL, 0), 0);
	world_deliver();
	expect_event(fixture.client, CONNECT_RESPONSE, 0, fixture.active, NULL);
	assert_int_equal(init_qp_attr_id(fixture.client, fixture.active, 2, &active), 0);
	assert_int_equal(init_qp_attr_id(fixture.server, event.id, 2, &passive), 0);
	assert_int_equal(active.path_mtu, 3);
	assert_int_equal(passive.path_mtu, 3);
	world_set_mtu(5);
	ucm_fixture_close(&fixture);
}

/* If memory to repeat the request is missing, the program gets the reason of the rejection. */
static void path_mtu_without_memory(void **state)
{
	struct ucm_fixture fixture;

	(void)state;
	ucm_fixture_open(&fixture, RDMA_PS_TCP, 3);
	fixture.active = prepare_client(&fixture, RDMA_PS_TCP, "10.0.0.1", PORT);
	world_set_mtu(3);
	assert_int_equal(connect_id(fixture.client, fixture.active, NULL, 0), 0);
	assert_int_equal(world_deliver(), 2);
	fail_allocation(1);
	world_pass(SECOND / 100);
	fail_allocation(0);
	expect_event(fixture.client, REJECTED, MAD_REJECT_INVALID_MTU, fixture.active, NULL);
	world_set_mtu(5);
	ucm_fixture_close(&fixture);
}

/* A request for which one of the allocations fails is rejected, and none of its objects is left. */
static void no_memory(void **state)
{
	struct rdma_ucm_event_resp event;
	unsigned int refused = 0;
	struct ucm_fixture fixture;

	(void)state;
	ucm_fixture_open(&fixture, RDMA_PS_TCP, 3);
	do {
		fixture.active = prepare_client(&fixture, RDMA_PS_TCP, "10.0.0.1", PORT);
		assert_int_equal(connect_id(fixture.client, fixture.active, NULL, 0), 0);
		fail_allocation(++refused);
		world_deliver_one();
		fail_allocation(0);
		world_deliver();
		if (get_event(fixture.server, &event) == 0)
			break;
		expect_event(fixture.client, REJECTED, 3, fixture.active, NULL);
		assert_int_equal(destroy_id(fixture.client, fixture.active, NULL), 0);
		world_pass(10 * SECOND);
		assert_int_equal(world_connections(), 0);
	} while (refused < 20);
	/* Three allocations have failed: those of the id, the connection and the event. */
	assert_int_equal(refused, 4);
	assert_int_equal(event.event, CONNECT_REQUEST);
	ucm_fixture_close(&fixture);
}

/* Shortest time of 20 attempts to rearm the timer 1000 times, in nanoseconds. */
static uint64_t time_of_changes(void)
{
	uint64_t shortest = UINT64_MAX;

	for (int try = 0; try < 20; try++) {
		struct timespec before, after;
		uint64_t took;

		ucm_lock();
		clock_gettime(CLOCK_MONOTONIC, &before);
		for (int i = 0; i < 1000; i++)
			ucm_rearm_timer();
		clock_gettime(CLOCK_MONOTONIC, &after);
		ucm_unlock();
		took = (uint64_t)(after.tv_sec - before.tv_sec) * SECOND + (uint64_t)after.tv_nsec -
		       (uint64_t)before.tv_nsec;
		shortest = took < shortest ? took : shortest;
	}
	return shortest;
}

static void connect_many(struct ucm_fixture *fixture, unsigned int number)
{
	for (unsigned int i = 0; i < number; i++) {
		fixture->active = prepare_client(fixture, RDMA_PS_TCP, "10.0.0.1", PORT);
		assert_int_equal(connect_id(fixture->client, fixture->active, NULL, 0), 0);
		world_lose();
	}
}

/*
 * The time to rearm the timer must not grow with the number of pending requests that need not be
 * repeated.
 */
static void many_under_way(void **state)
{
	struct ucm_fixture fixture;
	uint64_t few;

	(void)state;
	ucm_fixture_open(&fixture, RDMA_PS_TCP, 3);
	connect_many(&fixture, 4);
	few = time_of_changes();
	connect_many(&fixture, 4000);
	assert_uint_in_range(time_of_changes(), 0, 20 * few);
	ucm_fixture_close(&fixture);
}

/*
 * If some of the requests that wait to be repeated are destroyed, the others are still sent in
 * time.
 */
static void waiting_ones_go(void **state)
{
	enum { ASKERS = 12 };
	struct rdma_ucm_event_resp event;
	uint32_t ids[ASKERS];
	unsigned int alive = 0;
	struct ucm_fixture fixture;

	(void)state;
	ucm_fixture_open(&fixture, RDMA_PS_TCP, 3);
	/*
	 * After 12 ms the second half is rejected for the first time; the first half has been
	 * rejected twice by then, the last time after 5 ms.
	 */
	for (int i = 0; i < ASKERS; i++) {
		ids[i] = prepare_client(&fixture, RDMA_PS_TCP, "10.0.0.1", PORT + 1);
		assert_int_equal(connect_id(fixture.client, ids[i], NULL, 0), 0);
		world_deliver();
		if (i == ASKERS / 2 - 1) {
			world_pass(5 * MS);
			assert_int_equal(world_deliver(), ASKERS);
			world_pass(7 * MS);
			assert_int_equal(world_deliver(), 0);
		}
	}
	/* Destroy the first, the last and some in the middle of each queue. */
	for (int i = 0; i < ASKERS; i++) {
		if (i % 3 == 1)
			alive++;
		else
			assert_int_equal(destroy_id(fixture.client, ids[i], NULL), 0);
	}
	/*
	 * First half: 10 ms after the second rejection.  Second half: 5 ms after the first
	 * rejection, and then 10 ms after the second.
	 */
	world_pass(3 * MS);
	assert_int_equal(world_deliver(), alive);
	world_pass(2 * MS);
	assert_int_equal(world_deliver(), alive);
	world_pass(10 * MS);
	assert_int_equal(world_deliver(), alive);
	for (int i = 0; i < 20; i++) {
		world_pass(10 * MS);
		world_deliver();
	}
	for (unsigned int i = 0; i < alive; i++) {
		assert_int_equal(get_event(fixture.client, &event), 0);
		assert_int_equal(event.event, REJECTED);
		assert_int_equal(event.id % 3, ids[1] % 3);
	}
	expect_no_event(fixture.client);
	ucm_fixture_close(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(path_mtu),	   cmocka_unit_test(path_mtu_without_memory),
		cmocka_unit_test(no_memory),	   cmocka_unit_test(many_under_way),
		cmocka_unit_test(waiting_ones_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
