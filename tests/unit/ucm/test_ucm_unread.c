/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Requests that nobody has read yet, whose ids no program knows: each of what they hang on goes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "box.h"

/* Handle of the request, whose event has not been read. */
static uint32_t ask_unread(struct box *box)
{
	uint32_t next;

	box->active = begin(box, RDMA_PS_TCP, "10.0.0.1", PORT);
	assert_int_equal(create_id(box->client, RDMA_PS_TCP, 1, &next), 0);
	assert_int_equal(destroy_id(box->client, next, NULL), 0);
	assert_int_equal(connect_id(box->client, box->active, "hello", 5), 0);
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
 * exit() closes what is open.  This is the first test, as a child leaves its parent's memory where
 * it is.
 */
static void process_ends(void **state)
{
	struct box box;
	int status;
	pid_t child;

	(void)state;
	child = fork();
	assert_return_code(child, errno);
	if (child == 0) {
		open_box(&box, RDMA_PS_TCP, 9);
		ask_unread(&box);
		exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void channel_goes(void **state)
{
	struct box box;
	uint32_t active;

	(void)state;
	open_box(&box, RDMA_PS_TCP, 9);
	ask_unread(&box);
	active = box.active;
	ask_unread(&box);
	world_close(box.server);
	world_deliver();
	/* The channel's newest id goes first. */
	expect_event(box.client, REJECTED, 28, box.active, NULL);
	expect_event(box.client, REJECTED, 28, active, NULL);
	box.server = open_channel();
	close_box(&box);
}

/* A program may guess; the listener then has room for one more. */
static void request_goes(void **state)
{
	struct box box;
	uint32_t id, reported;

	(void)state;
	open_box(&box, RDMA_PS_TCP, 1);
	id = ask_unread(&box);
	assert_int_equal(destroy_id(box.server, id, &reported), 0);
	assert_int_equal(reported, 0);
	expect_no_event(box.server);
	world_deliver();
	expect_event(box.client, REJECTED, 28, box.active, NULL);
	id = ask_unread(&box);
	expect_request(box.server, id);
	expect_no_event(box.server);
	close_box(&box);
}

/* rdma_migrate_id() of a synchronous listener closes the channel that it comes from. */
static void listener_moves(void **state)
{
	struct box box;
	uint32_t active, first, second;
	int other;

	(void)state;
	open_box(&box, RDMA_PS_TCP, 9);
	first = ask_unread(&box);
	active = box.active;
	second = ask_unread(&box);
	other = open_channel();
	assert_int_equal(migrate_id(other, box.server, box.listener, NULL), 0);
	world_close(box.server);
	world_deliver();
	expect_no_event(box.client);
	expect_request(other, first);
	assert_int_equal(accept_id(other, first, SERVER_UID, NULL, 0), 0);
	world_deliver();
	expect_event(box.client, CONNECT_RESPONSE, 0, active, NULL);
	/* The other one goes with its listener. */
	assert_int_equal(destroy_id(other, box.listener, NULL), 0);
	expect_no_event(other);
	assert_int_equal(destroy_id(other, second, NULL), ENOENT);
	world_deliver();
	expect_event(box.client, REJECTED, 28, box.active, NULL);
	box.server = other;
	close_box(&box);
}

/* Events that a program wrote for a guessed id move with the request. */
static void written_events_move(void **state)
{
	struct box box;
	uint32_t id, reported;
	int other;

	(void)state;
	open_box(&box, RDMA_PS_TCP, 9);
	id = ask_unread(&box);
	assert_int_equal(write_event_id(box.server, id, USER, 0, 5), 0);
	other = open_channel();
	assert_int_equal(migrate_id(other, box.server, box.listener, NULL), 0);
	expect_no_event(box.server);
	expect_request(other, id);
	expect_event(other, USER, 0, id, NULL);
	assert_int_equal(write_event_id(other, id, USER, 0, 5), 0);
	assert_int_equal(destroy_id(other, id, &reported), 0);
	assert_int_equal(reported, 1);
	expect_no_event(other);
	world_close(box.server);
	box.server = other;
	close_box(&box);
}

/* It cannot be taken away from its listener. */
static void request_moves(void **state)
{
	struct box box;
	uint32_t id;
	int other;

	(void)state;
	open_box(&box, RDMA_PS_TCP, 9);
	id = ask_unread(&box);
	other = open_channel();
	assert_int_equal(migrate_id(other, box.server, id, NULL), ENOENT);
	world_close(other);
	expect_request(box.server, id);
	other = open_channel();
	assert_int_equal(migrate_id(other, box.server, id, NULL), 0);
	assert_int_equal(accept_id(other, id, SERVER_UID, NULL, 0), 0);
	world_deliver();
	expect_event(box.client, CONNECT_RESPONSE, 0, box.active, NULL);
	world_close(other);
	close_box(&box);
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
