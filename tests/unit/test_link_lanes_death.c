/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Shared memory when a process is killed, forks, lies, or belongs to another user.
 */
#include "link_agent.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "link/lane.h"

#ifndef MFD_CLOEXEC
#define MFD_CLOEXEC 1u
#define MFD_ALLOW_SEALING 2u
#endif

static char error[LINK_ERROR_TEXT];
static uint8_t room[LINK_MAX_BYTES + 1];

struct fixture {
	struct link *link;
	struct link_addr *addr;
	struct agent agent;
	uint32_t qpn;
};

static int open_link(void **state)
{
	static struct fixture fixture;

	fresh_network(state);
	if (link_open(&fixture.link, error) ||
	    link_addr_open(fixture.link, loopback4, 0, &fixture.addr, error)) {
		fprintf(stderr, "%s\n", error);
		return -1;
	}
	link_set_shared_memory(fixture.link, true);
	fixture.qpn = link_slot(fixture.link) << LINK_SLOT_SHIFT | 77;
	*state = &fixture;
	return 0;
}

static int close_link(void **state)
{
	struct fixture *fixture = *state;

	link_addr_close(fixture->addr);
	link_close(fixture->link);
	return 0;
}

static void start_agent(struct fixture *fixture)
{
	agent_start_good(&fixture->agent, 0, loopback4, fixture->link);
	agent_share(&fixture->agent, fixture->link, true);
}

static struct link_peer *open_memory(struct fixture *fixture)
{
	struct link_peer *peer;
	uint16_t port = 0xc345;

	assert_int_equal(link_peer_open_own(fixture->addr, loopback4, 0, 0, 64,
					    fixture->agent.slot << LINK_SLOT_SHIFT | 99, &port,
					    &peer),
			 0);
	for (unsigned int i = 0; i < 1000 && !link_peer_use_memory(peer); i++) {
		usleep(1000);
		serve(fixture->link);
	}
	assert_true(link_peer_use_memory(peer));
	return peer;
}

static int send_tag(struct fixture *fixture, struct link_peer *peer, uint32_t tag)
{
	uint8_t bytes[4000];
	struct iovec piece = { bytes, sizeof(bytes) };

	put_datagram(bytes, sizeof(bytes), fixture->agent.slot << LINK_SLOT_SHIFT | 99, tag);
	return link_send(peer, &piece, 1, 0);
}

static void expect(struct fixture *fixture, uint32_t tag)
{
	struct agent_report report;

	assert_true(agent_report(&fixture->agent, fixture->link, 2000, &report));
	assert_int_equal(report.event, AGENT_DATAGRAM);
	assert_int_equal(report.error, 0);
	assert_int_equal(report.tag, tag);
	assert_true(report.memory);
}

/* A new process in the slot of one that was killed is reached by who connects anew. */
static void test_reader_is_killed(void **state)
{
	struct fixture *fixture = *state;
	struct link_peer *old, *peer;

	start_agent(fixture);
	old = open_memory(fixture);
	assert_int_equal(send_tag(fixture, old, 1), 0);
	expect(fixture, 1);
	for (unsigned int round = 0; round < 5; round++) {
		unsigned int slot = fixture->agent.slot;
		struct agent_report report;

		agent_kill(&fixture->agent);
		start_agent(fixture);
		assert_int_equal(fixture->agent.slot, slot);
		peer = open_memory(fixture);
		/* Into nothing, until that is full, and then still. */
		for (uint32_t i = 0; i < 300; i++) {
			int result = send_tag(fixture, old, 666);

			assert_true(result == 0 || result == -EAGAIN);
		}
		assert_int_equal(send_tag(fixture, peer, round), 0);
		expect(fixture, round);
		assert_false(agent_report(&fixture->agent, fixture->link, 20, &report));
		link_peer_close(old);
		old = peer;
	}
	link_peer_close(old);
	agent_stop(&fixture->agent);
}

static bool is_whole(const struct link_batch *batch)
{
	uint8_t expected[LINK_MAX_BYTES];

	put_datagram(expected, batch->bytes, datagram_qpn(batch->buffer),
		     datagram_tag(batch->buffer));
	return memcmp(expected, batch->buffer, batch->bytes) == 0;
}

/* Receive by shared memory for some milliseconds: only whole runs, in order.  How many. */
static unsigned int stream(struct fixture *fixture, uint32_t tag, int milliseconds)
{
	int64_t end = link_now_ms() + milliseconds;
	unsigned int count = 0;

	while (link_now_ms() < end) {
		struct link_batch batch = { .buffer = room, .buffer_bytes = sizeof(room) };

		serve(fixture->link);
		if (link_receive(fixture->addr, &batch))
			continue;
		assert_non_null(batch.ring);
		assert_int_equal(batch.bytes, 9000);
		assert_int_equal(datagram_tag(batch.buffer), tag + count++);
		assert_true(is_whole(&batch));
		link_release(&batch);
	}
	return count;
}

/* Killed at any moment: what has come is whole, and the next in that slot goes on. */
static void test_writer_is_killed(void **state)
{
	struct fixture *fixture = *state;
	struct agent_order order = { .what = AGENT_SEND,
				     .qpn = fixture->qpn,
				     .runs = 1u << 30,
				     .bytes = 9000,
				     .patience_ms = 2000 };
	unsigned int slot = 0;

	for (unsigned int round = 0; round < 20; round++) {
		unsigned int count;

		order.tag = round << 20;
		start_agent(fixture);
		assert_true(round == 0 || fixture->agent.slot == slot);
		slot = fixture->agent.slot;
		agent_order(&fixture->agent, &order);
		count = stream(fixture, order.tag, 30 + (int)round);
		agent_kill(&fixture->agent);
		count += stream(fixture, order.tag + count, 5);
		assert_true(count > 0);
	}
}

/* ---- fork ---- */

static unsigned int count_inboxes(void)
{
	char name[300], target[300];
	struct dirent *entry;
	unsigned int count = 0;
	DIR *folder = opendir("/proc/self/fd");

	while ((entry = readdir(folder))) {
		ssize_t bytes;

		snprintf(name, sizeof(name), "/proc/self/fd/%s", entry->d_name);
		bytes = readlink(name, target, sizeof(target) - 1);
		if (bytes > 0) {
			target[bytes] = 0;
			count += strstr(target, "uroce-inbox") != NULL;
		}
	}
	closedir(folder);
	return count;
}

/* Take the place of the parent's memory, which the child must not have. */
static uint8_t *take_place(void *at, size_t bytes)
{
	uint8_t *mine = mmap(at, bytes, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (mine != at)
		_exit(10);
	memset(mine, 0x77, bytes);
	return mine;
}

static void run_child(struct fixture *fixture, struct link_peer *peer)
{
	const struct link_lane *lane = fixture->addr->lane[fixture->agent.slot];
	struct link_batch batch = { .buffer = room, .buffer_bytes = sizeof(room) };
	uint8_t *head, *ring, *inbox;

	signal(SIGSEGV, SIG_DFL);
	link_abandon(fixture->link);
	if (count_inboxes())
		_exit(11);
	/* Any access ends it by a signal. */
	if (send_tag(fixture, peer, 1) != -EOWNERDEAD || !link_peer_use_memory(peer))
		_exit(12);
	if (link_receive(fixture->addr, &batch) != -EOWNERDEAD || link_addr_await(fixture->addr))
		_exit(15);
	link_addr_awake(fixture->addr);
	head = take_place(lane->inbox, UROCE_ABI_INBOX_HEAD_BYTES);
	ring = take_place(lane->ring_memory, UROCE_ABI_RING_STRIDE);
	inbox = take_place(fixture->addr->inbox->memory, 1 << 20);
	link_peer_close(peer);
	link_addr_close(fixture->addr);
	link_close(fixture->link);
	/* All of what took the place is there still; if not, this is a signal. */
	for (size_t i = 0; i < UROCE_ABI_INBOX_HEAD_BYTES; i++)
		if (head[i] != 0x77 || ring[i] != 0x77)
			_exit(13);
	_exit(ring[UROCE_ABI_RING_STRIDE - 1] == 0x77 && inbox[(1 << 20) - 1] == 0x77 ? 0 : 14);
}

/* The child of a fork has no way into shared memory, its parent goes on. */
static void test_fork(void **state)
{
	struct fixture *fixture = *state;
	struct link_peer *peer;
	struct pollfd wait;
	pid_t child;
	int status;

	start_agent(fixture);
	peer = open_memory(fixture);
	/* The agent has asked back: this process has an inbox too. */
	wait = (struct pollfd){ .fd = link_control_fd(fixture->link), .events = POLLIN };
	for (unsigned int i = 0; i < 100 && !fixture->addr->inbox; i++) {
		poll(&wait, 1, 20);
		serve(fixture->link);
	}
	assert_non_null(fixture->addr->inbox);
	assert_int_equal(count_inboxes(), 2);
	link_fork_prepare(fixture->link);
	child = fork();
	if (child == 0)
		run_child(fixture, peer);
	link_fork_parent(fixture->link);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(send_tag(fixture, peer, 5), 0);
	expect(fixture, 5);
	link_peer_close(peer);
	/* Its lock on its inbox has outlived the child. */
	peer = open_memory(fixture);
	assert_int_equal(send_tag(fixture, peer, 6), 0);
	expect(fixture, 6);
	link_peer_close(peer);
	agent_stop(&fixture->agent);
}

#define WITH_LINK(test) cmocka_unit_test_setup_teardown(test, open_link, close_link)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_LINK(test_reader_is_killed),
		WITH_LINK(test_writer_is_killed),
		WITH_LINK(test_fork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
