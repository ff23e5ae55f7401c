/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Removal of a device: its events, and the calls that still succeed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "ucm_fixture.h"

#define DEVICE_REMOVAL 11

static int tear_down(void **state)
{
	(void)state;
	world_remove_device(0);
	return 0;
}

/* Both ends of a connection get one event; after that their ids can only be destroyed. */
static void connection(void **state)
{
	struct rdma_ucm_query_route_resp route;
	struct ucm_fixture fixture;

	(void)state;
	ucm_fixture_open(&fixture, RDMA_PS_TCP, 3);
	establish_connection(&fixture);
	world_remove_device(WORLD_LOOPBACK);
	expect_no_event(fixture.client);
	world_remove_device(WORLD_DEVICE);
	world_remove_device(WORLD_DEVICE);
	expect_event(fixture.client, DEVICE_REMOVAL, 0, fixture.active, NULL);
	expect_event(fixture.server, DEVICE_REMOVAL, 0, fixture.passive, NULL);
	assert_int_equal(disconnect_id(fixture.client, fixture.active), ENXIO);
	assert_int_equal(query_route_id(fixture.client, fixture.active, &route), ENXIO);
	assert_int_equal(destroy_id(fixture.client, fixture.active, NULL), 0);
	world_deliver();
	world_pass(20 * SECOND);
	/* The listener of any address is bound to no device. */
	expect_no_event(fixture.server);
	expect_no_event(fixture.client);
	ucm_fixture_close(&fixture);
}

/* A listener that is bound to an address of the device gets the event, and its port is free. */
static void listener(void **state)
{
	struct ucm_fixture fixture;
	uint32_t bound;

	(void)state;
	ucm_fixture_open(&fixture, RDMA_PS_TCP, 3);
	assert_int_equal(create_id(fixture.server, RDMA_PS_TCP, LISTENER_UID, &bound), 0);
	assert_int_equal(bind_id(fixture.server, bound, "10.0.0.1", PORT + 1), 0);
	assert_int_equal(listen_id(fixture.server, bound, 1), 0);
	assert_int_equal(world_ports(), 2);
	world_remove_device(WORLD_DEVICE);
	expect_event(fixture.server, DEVICE_REMOVAL, 0, bound, NULL);
	expect_no_event(fixture.server);
	assert_int_equal(world_ports(), 1);
	assert_int_equal(listen_id(fixture.server, bound, 1), ENXIO);
	assert_int_equal(destroy_id(fixture.server, bound, NULL), 0);
	ucm_fixture_close(&fixture);
}

/* A request that was not accepted raises no event; accepting it fails. */
static void request(void **state)
{
	struct ucm_fixture fixture;

	(void)state;
	ucm_fixture_open(&fixture, RDMA_PS_TCP, 3);
	request_connection(&fixture, "10.0.0.1");
	world_remove_device(WORLD_DEVICE);
	expect_event(fixture.client, DEVICE_REMOVAL, 0, fixture.active, NULL);
	expect_no_event(fixture.server);
	assert_int_equal(accept_id(fixture.server, fixture.passive, SERVER_UID, NULL, 0), ENXIO);
	assert_int_equal(destroy_id(fixture.server, fixture.passive, NULL), 0);
	ucm_fixture_close(&fixture);
}

/* The address of the id is being resolved: DEVICE_REMOVAL remains its last event. */
static void resolution(void **state)
{
	struct ucm_fixture fixture;
	uint32_t id;

	(void)state;
	ucm_fixture_open(&fixture, RDMA_PS_TCP, 3);
	assert_int_equal(create_id(fixture.client, RDMA_PS_TCP, CLIENT_UID, &id), 0);
	assert_int_equal(bind_id(fixture.client, id, "10.0.0.1", PORT + 1), 0);
	world_hold_neighbours(true);
	assert_int_equal(resolve_id(fixture.client, id, "10.0.0.2", PORT), 0);
	world_remove_device(WORLD_DEVICE);
	expect_event(fixture.client, DEVICE_REMOVAL, 0, id, NULL);
	world_hold_neighbours(false);
	world_run_work();
	expect_no_event(fixture.client);
	ucm_fixture_close(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(connection, tear_down),
		cmocka_unit_test_teardown(listener, tear_down),
		cmocka_unit_test_teardown(request, tear_down),
		cmocka_unit_test_teardown(resolution, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
