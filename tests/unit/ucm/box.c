/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "box.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

void open_box(struct box *box, uint16_t space, uint32_t backlog)
{
	box->server = open_channel();
	box->client = open_channel();
	assert_int_equal(create_id(box->server, space, LISTENER_UID, &box->listener), 0);
	assert_int_equal(bind_id(box->server, box->listener, NULL, PORT), 0);
	assert_int_equal(listen_id(box->server, box->listener, backlog), 0);
}

uint32_t begin(struct box *box, uint16_t space, const char *address, uint16_t port)
{
	uint32_t id;

	assert_int_equal(create_id(box->client, space, CLIENT_UID, &id), 0);
	assert_int_equal(resolve_id(box->client, id, address, port), 0);
	expect_event(box->client, ADDR_RESOLVED, 0, id, NULL);
	assert_int_equal(resolve_route_id(box->client, id), 0);
	expect_event(box->client, ROUTE_RESOLVED, 0, id, NULL);
	return id;
}

void ask(struct box *box, const char *address)
{
	struct rdma_ucm_event_resp event;

	box->active = begin(box, RDMA_PS_TCP, address, PORT);
	assert_int_equal(connect_id(box->client, box->active, "hello", 5), 0);
	world_deliver();
	assert_int_equal(get_event(box->server, &event), 0);
	assert_int_equal(event.event, CONNECT_REQUEST);
	box->passive = event.id;
}

void establish(struct box *box)
{
	struct rdma_ucm_event_resp event;

	ask(box, "10.0.0.1");
	assert_int_equal(accept_id(box->server, box->passive, SERVER_UID, "welcome", 7), 0);
	world_deliver();
	expect_event(box->client, CONNECT_RESPONSE, 0, box->active, &event);
	assert_int_equal(establish_id(box->client, box->active), 0);
	world_deliver();
	expect_event(box->server, ESTABLISHED, 0, box->passive, &event);
	assert_int_equal(event.uid, SERVER_UID);
}

void close_box(struct box *box)
{
	world_close(box->server);
	world_close(box->client);
	world_deliver();
	world_pass(200 * SECOND);
	world_lose();
	assert_int_equal(world_ports(), 0);
	assert_int_equal(world_last_messages(), 0);
}
