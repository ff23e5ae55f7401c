/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "ucm_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

void ucm_fixture_open(struct ucm_fixture *fixture, uint16_t space, uint32_t backlog)
{
	fixture->server = open_channel();
	fixture->client = open_channel();
	assert_int_equal(create_id(fixture->server, space, LISTENER_UID, &fixture->listener), 0);
	assert_int_equal(bind_id(fixture->server, fixture->listener, NULL, PORT), 0);
	assert_int_equal(listen_id(fixture->server, fixture->listener, backlog), 0);
}

uint32_t prepare_client(struct ucm_fixture *fixture, uint16_t space, const char *address,
			uint16_t port)
{
	uint32_t id;

	assert_int_equal(create_id(fixture->client, space, CLIENT_UID, &id), 0);
	assert_int_equal(resolve_id(fixture->client, id, address, port), 0);
	expect_event(fixture->client, ADDR_RESOLVED, 0, id, NULL);
	assert_int_equal(resolve_route_id(fixture->client, id), 0);
	expect_event(fixture->client, ROUTE_RESOLVED, 0, id, NULL);
	return id;
}

void request_connection(struct ucm_fixture *fixture, const char *address)
{
	struct rdma_ucm_event_resp event;

	fixture->active = prepare_client(fixture, RDMA_PS_TCP, address, PORT);
	assert_int_equal(connect_id(fixture->client, fixture->active, "hello", 5), 0);
	world_deliver();
	assert_int_equal(get_event(fixture->server, &event), 0);
	assert_int_equal(event.event, CONNECT_REQUEST);
	fixture->passive = event.id;
}

void establish_connection(struct ucm_fixture *fixture)
{
	struct rdma_ucm_event_resp event;

	request_connection(fixture, "10.0.0.1");
	assert_int_equal(accept_id(fixture->server, fixture->passive, SERVER_UID, "welcome", 7), 0);
	world_deliver();
	expect_event(fixture->client, CONNECT_RESPONSE, 0, fixture->active, &event);
	assert_int_equal(establish_id(fixture->client, fixture->active), 0);
	world_deliver();
	expect_event(fixture->server, ESTABLISHED, 0, fixture->passive, &event);
	assert_int_equal(event.uid, SERVER_UID);
}

void ucm_fixture_close(struct ucm_fixture *fixture)
{
	world_close(fixture->server);
	world_close(fixture->client);
	world_deliver();
	world_pass(200 * SECOND);
	world_lose();
	assert_int_equal(world_ports(), 0);
	assert_int_equal(world_last_messages(), 0);
}
