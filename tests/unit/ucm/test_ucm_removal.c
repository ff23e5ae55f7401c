/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Removal of a device: its events, and the calls that still succeed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "box.h"

#define DEVICE_REMOVAL 11

static int tear_down(void **state)
{
	(void)state;
	world_remove_device(0);
	return 0;
}

/* Both ends of a connection get one event; then each can be destroyed, and nothing else. */
static void connection(void **state)
{
	struct rdma_ucm_query_route_resp route;
	struct box box;

	(void)state;
	open_box(&box, RDMA_PS_TCP, 3);
	establish(&box);
	world_remove_device(WORLD_LOOPBACK);
	expect_no_event(box.client);
	world_remove_device(WORLD_DEVICE);
	world_remove_device(WORLD_DEVICE);
	expect_event(box.client, DEVICE_REMOVAL, 0, box.active, NULL);
	expect_event(box.server, DEVICE_REMOVAL, 0, box.passive, NULL);
	assert_int_equal(disconnect_id(box.client, box.active), ENXIO);
	assert_int_equal(query_route_id(box.client, box.active, &route), ENXIO);
	assert_int_equal(destroy_id(box.client, box.active, NULL), 0);
	world_deliver();
	world_pass(20 * SECOND);
	/* The listener of any address is bound to no device. */
	expect_no_event(box.server);
	expect_no_event(box.client);
	close_box(&box);
}

/* One that is bound to an address of the device; its port is free. */
static void listener(void **state)
{
	struct box box;
	uint32_t bound;

	(void)state;
	open_box(&box, RDMA_PS_TCP, 3);
	assert_int_equal(create_id(box.server, RDMA_PS_TCP, LISTENER_UID, &bound), 0);
	assert_int_equal(bind_id(box.server, bound, "10.0.0.1", PORT + 1), 0);
	assert_int_equal(listen_id(box.server, bound, 1), 0);
	assert_int_equal(world_ports(), 2);
	world_remove_device(WORLD_DEVICE);
	expect_event(box.server, DEVICE_REMOVAL, 0, bound, NULL);
	expect_no_event(box.server);
	assert_int_equal(world_ports(), 1);
	assert_int_equal(listen_id(box.server, bound, 1), ENXIO);
	assert_int_equal(destroy_id(box.server, bound, NULL), 0);
	close_box(&box);
}

/* A request that was not accepted raises no event; accepting it fails. */
static void request(void **state)
{
	struct box box;

	(void)state;
	open_box(&box, RDMA_PS_TCP, 3);
	ask(&box, "10.0.0.1");
	world_remove_device(WORLD_DEVICE);
	expect_event(box.client, DEVICE_REMOVAL, 0, box.active, NULL);
	expect_no_event(box.server);
	assert_int_equal(accept_id(box.server, box.passive, SERVER_UID, NULL, 0), ENXIO);
	assert_int_equal(destroy_id(box.server, box.passive, NULL), 0);
	close_box(&box);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(connection, tear_down),
		cmocka_unit_test_teardown(listener, tear_down),
		cmocka_unit_test_teardown(request, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
