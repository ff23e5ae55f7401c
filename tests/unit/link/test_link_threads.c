/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The threads of a process: one serves the control socket, one sends, one opens and closes.
 */
#include "link_fixture.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 100

static char error[LINK_ERROR_TEXT];
static struct link *shared;
static atomic_bool stop;

/* Like the helper thread of progress: sleeps until a message arrives, and processes it. */
static void *serve_control(void *arg)
{
	static uint8_t room[LINK_MAX_BYTES + 1];
	struct link_batch batch = { .buffer = room, .buffer_bytes = sizeof(room) };
	struct pollfd wait[2] = {
		{ .fd = link_broker_fd(shared), .events = POLLIN },
		{ .fd = link_writers_fd(shared), .events = POLLIN },
	};

	(void)arg;
	while (!stop) {
		poll(wait, 2, 10);
		link_maintain_broker(shared, NULL, NULL);
		while (link_delivery_receive(shared, &batch) == 0)
			continue;
		link_serve_writers(shared);
	}
	return NULL;
}

static void *send_always(void *arg)
{
	struct link_peer *peer = arg;
	uint8_t bytes[400];
	struct iovec piece = { bytes, sizeof(bytes) };

	put_datagram(bytes, sizeof(bytes), (link_slot(shared) << LINK_SLOT_SHIFT | 100), 1);
	while (!stop) {
		int result = link_send(peer, &piece, 1, 40);

		if (result && result != -EAGAIN && result != -ENOBUFS)
			return (void *)"link_send() failed";
	}
	return NULL;
}

static void open_and_close(const uint8_t gid[16], unsigned int round)
{
	uint16_t port = (uint16_t)(0xc000 + round % 7);
	struct link_counters counters;
	struct link_addr *addr;
	struct link_peer *peer;

	if (link_addr_open(shared, gid, 0, &addr, error))
		fail_msg("%s", error);
	assert_int_equal(link_peer_open(addr, &(struct link_dst){ .gid = gid }, &port, &peer), 0);
	link_counters(shared, &counters);
	link_peer_close(peer);
	link_addr_close(addr);
}

/* All threads run at the same time: no call fails, and no two threads wait for each other. */
static void test_threads(void **state)
{
	struct link_addr *addr;
	struct link_peer *peer;
	pthread_t server, sender;
	uint16_t port = 0xc000;
	void *complaint;
	struct link_child child, holder;
	unsigned int i;

	(void)state;
	/* This child has other4 open all the time, so the test's process joins it each time. */
	child_start_good(&holder, 0, other4, NULL);
	assert_int_equal(open_loopback(&shared, &addr), 0);
	assert_int_equal(link_peer_open(addr, &(struct link_dst){ .gid = loopback4 }, &port, &peer),
			 0);
	pthread_create(&server, NULL, serve_control, NULL);
	pthread_create(&sender, NULL, send_always, peer);
	for (i = 0; i < ROUNDS; i++) {
		open_and_close(i % 2 ? other4 : loopback6, i);
		if (i % 20 == 0) {
			/* The child joins while only the server thread serves the link. */
			child_start_good(&child, 0, loopback4, NULL);
			child_stop(&child);
		}
	}
	stop = true;
	pthread_join(server, NULL);
	pthread_join(sender, &complaint);
	assert_null(complaint);
	link_peer_close(peer);
	close_loopback(shared, addr);
	child_stop(&holder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_threads, enter_new_netns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
