/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Requests that have not been read, so that no program knows their ids: effects if the request, its
 * listener, its channel or the process ends, or if the listener moves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ucm_fixture.h"

/* Sends a request whose event is not read.  Returns its id, the lowest free number. */
static uint32_t ask_unread(struct ucm_fixture *fixture)
{
	uint32_t next;

	fixture->active = prepare_client(fixture, RDMA_PS_TCP, "10.0.0.1", PORT);
	assert_int_equal(create_id(fixture->client, RDMA_PS_TCP, 1, &next), 0);
	assert_int_equal(destroy_id(fixture->client, next, NULL), 0);
	assert_int_equal(connect_id(fixture->client, fixture->active, "hello", 5), 0);
	world_deliver();
	return next;
}

static void expect_request(int fd, uint32_t id)
{
	struct rdma_ucm_event_resp event;

	assert_int_equal(get_event(fd, &event), 0);
	assert_int_equal(event.event, CONNECT_REQUEST);
	assert_int_equal(event.uid, LISTENER_UID);
	assert_int_equal(event.id, id);
	assert_memory_equal(event.param.conn.private_data, "hello", 5);
}

/*
 * exit() closes open channels.  This must be the first test: a child does not free memory that its
 * parent has allocated.
 */
static void process_ends(void **state)
{
	struct ucm_fixture fixture;
	int status;
	pid_t child;

	(void)state;
	child = fork();
	assert_return_code(child, errno);
	if (child == 0) {
		ucm_fixture_open(&fixture, RDMA_PS_TCP, 9);
		ask_unread(&fixture);
		exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void channel_goes(void **state)
{
	struct ucm_fixture fixture;
	uint32_t active;

	(void)state;
	ucm_fixture_open(&fixture, RDMA_PS_TCP, 9);
	ask_unread(&fixture);
	active = fixture.active;
	ask_unread(&fixture);
	world_close(fixture.server);
	world_deliver();
	/* The newest id of the channel is destroyed first. */
	expect_event(fixture.client, REJECTED, 28, fixture.active, NULL);
	expect_event(fixture.client, REJECTED, 28, active, NULL);
	fixture.server = open_channel();
	ucm_fixture_close(&fixture);
}

/* A program may guess the id and destroy the request; the listener can then receive another one. */
static void request_goes(void **state)
{
	struct ucm_fixture fixture;
	uint32_t id, reported;

	(void)state;
	ucm_fixture_open(&fixture, RDMA_PS_TCP, 1);
	id = ask_unread(&fixture);
	assert_int_equal(destroy_id(fixture.server, id, &reported), 0);
	assert_int_equal(reported, 0);
	expect_no_event(fixture.server);
	world_deliver();
	expect_event(fixture.client, REJECTED, 28, fixture.active, NULL);
	id = ask_unread(&fixture);
	expect_request(fixture.server, id);
	expect_no_event(fixture.server);
	ucm_fixture_close(&fixture);
}

/* rdma_migrate_id() of a synchronous listener closes the previous channel of the listener. */
static void listener_moves(void **state)
{
	struct ucm_fixture fixture;
	uint32_t active, first, second;
	int other;

	(void)state;
	ucm_fixture_open(&fixture, RDMA_PS_TCP, 9);
	first = ask_unread(&fixture);
	active = fixture.active;
	second = ask_unread(&fixture);
	other = open_channel();
	assert_int_equal(migrate_id(other, fixture.server, fixture.listener, NULL), 0);
	world_close(fixture.server);
	world_deliver();
	expect_no_event(fixture.client);
	expect_request(other, first);
	assert_int_equal(accept_id(other, first, SERVER_UID, NULL, 0), 0);
	world_deliver();
	expect_event(fixture.client, CONNECT_RESPONSE, 0, active, NULL);
	/* The other request is destroyed with its listener. */
	assert_int_equal(destroy_id(other, fixture.listener, NULL), 0);
	expect_no_event(other);
	assert_int_equal(destroy_id(other, second, NULL), ENOENT);
	world_deliver();
	expect_event(fixture.client, REJECTED, 28, fixture.active, NULL);
	fixture.server = other;
	ucm_fixture_close(&fixture);
}

/* Events that a program wrote for a guessed id move with the request. */
static void written_events_move(void **state)
{
	struct ucm_fixture fixture;
	uint32_t id, reported;
	int other;

	(void)state;
	ucm_fixture_open(&fixture, RDMA_PS_TCP, 9);
	id = ask_unread(&fixture);
	assert_int_equal(write_event_id(fixture.server, id, USER, 0, 5), 0);
	other = open_channel();
	assert_int_equal(migrate_id(other, fixture.server, fixture.listener, NULL), 0);
	expect_no_event(fixture.server);
	expect_request(other, id);
	expect_event(other, USER, 0, id, NULL);
	assert_int_equal(write_event_id(other, id, USER, 0, 5), 0);
	assert_int_equal(destroy_id(other, id, &reported), 0);
	assert_int_equal(reported, 1);
	expect_no_event(other);
	world_close(fixture.server);
	fixture.server = other;
	ucm_fixture_close(&fixture);
}

/* An unread request cannot be migrated away from its listener. */
static void request_moves(void **state)
{
	struct ucm_fixture fixture;
	uint32_t id;
	int other;

	(void)state;
	ucm_fixture_open(&fixture, RDMA_PS_TCP, 9);
	id = ask_unread(&fixture);
	other = open_channel();
	assert_int_equal(migrate_id(other, fixture.server, id, NULL), ENOENT);
	world_close(other);
	expect_request(fixture.server, id);
	other = open_channel();
	assert_int_equal(migrate_id(other, fixture.server, id, NULL), 0);
	assert_int_equal(accept_id(other, id, SERVER_UID, NULL, 0), 0);
	world_deliver();
	expect_event(fixture.client, CONNECT_RESPONSE, 0, fixture.active, NULL);
	world_close(other);
	ucm_fixture_close(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(process_ends),	       cmocka_unit_test(channel_goes),
		cmocka_unit_test(request_goes),	       cmocka_unit_test(listener_moves),
		cmocka_unit_test(written_events_move), cmocka_unit_test(request_moves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
