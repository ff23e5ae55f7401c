/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Requests that this side cannot take as they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "box.h"
#include "memory.h"

/* A request whose packets would be too large for this side is made again with what fits. */
static void path_mtu(void **state)
{
	struct ib_uverbs_qp_attr active, passive;
	struct rdma_ucm_event_resp event;
	struct box box;

	(void)state;
	open_box(&box, RDMA_PS_TCP, 3);
	box.active = begin(&box, RDMA_PS_TCP, "10.0.0.1", PORT);
	world_set_mtu(3);
	assert_int_equal(connect_id(box.client, box.active, NULL, 0), 0);
	assert_int_equal(world_deliver(), 2);
	expect_no_event(box.server);
	expect_no_event(box.client);
	world_pass(SECOND / 100);
	world_deliver();
	assert_int_equal(get_event(box.server, &event), 0);
	assert_int_equal(event.event, CONNECT_REQUEST);
	assert_int_equal(accept_id(box.server, event.id, SERVER_UID, NULL, 0), 0);
	world_deliver();
	expect_event(box.client, CONNECT_RESPONSE, 0, box.active, NULL);
	assert_int_equal(init_qp_attr_id(box.client, box.active, 2, &active), 0);
	assert_int_equal(init_qp_attr_id(box.server, event.id, 2, &passive), 0);
	assert_int_equal(active.path_mtu, 3);
	assert_int_equal(passive.path_mtu, 3);
	world_set_mtu(5);
	close_box(&box);
}

/* Whatever there is no memory for when a request comes: it is refused, and nothing is left of it.
 */
static void no_memory(void **state)
{
	struct rdma_ucm_event_resp event;
	unsigned int refused = 0;
	struct box box;

	(void)state;
	open_box(&box, RDMA_PS_TCP, 3);
	do {
		box.active = begin(&box, RDMA_PS_TCP, "10.0.0.1", PORT);
		assert_int_equal(connect_id(box.client, box.active, NULL, 0), 0);
		fail_allocation(++refused);
		world_deliver_one();
		fail_allocation(0);
		world_deliver();
		if (get_event(box.server, &event) == 0)
			break;
		expect_event(box.client, REJECTED, 3, box.active, NULL);
		assert_int_equal(destroy_id(box.client, box.active, NULL), 0);
		world_pass(10 * SECOND);
		assert_int_equal(world_connections(), 0);
	} while (refused < 20);
	/* The id, the connection, the event. */
	assert_int_equal(refused, 4);
	assert_int_equal(event.event, CONNECT_REQUEST);
	close_box(&box);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(path_mtu),
		cmocka_unit_test(no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
