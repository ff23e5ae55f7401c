/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The sockets of an address: each process holds few of them, and processes that end, in whatever
 * order, leave the others with theirs.
 */
#include "link_fixture.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "own_time.h"

enum {
	ADDRESSES = 16,
	PER_ADDRESS = 8,
	CROWD = 14,
	STEP = 4, /* of the pool */
	PROBE_BYTES = 8,
	JOINS = 600,
	BURST_BYTES = 65536,
	HASTE = 100, /* 30 ms pass for 3 seconds */
};

static char error[LINK_ERROR_TEXT];

/* A process that has the host for itself holds few descriptors of an address, of many as well. */
static void test_few_descriptors(void **state)
{
	struct link_addr *addr[ADDRESSES];
	uint8_t gid[16];
	unsigned int before;
	struct link *link;

	(void)state;
	memcpy(gid, loopback4, sizeof(gid));
	assert_int_equal(link_open(&link, error), 0);
	before = count_descriptors();
	for (unsigned int i = 0; i < ADDRESSES; i++) {
		gid[15] = (uint8_t)(i + 1);
		assert_int_equal(link_addr_open(link, gid, 0, &addr[i], error), 0);
		assert_true(count_descriptors() - before <= (i + 1) * PER_ADDRESS);
	}
	for (unsigned int i = 0; i < ADDRESSES; i++)
		link_addr_close(addr[i]);
	assert_int_equal(count_descriptors(), before);
	link_close(link);
}

/* With 64 descriptors in all, as some hosts have it, an address can be had; so can a second one. */
static void test_small_limit(void **state)
{
	pid_t child = fork();

	(void)state;
	if (child == 0) {
		const struct rlimit limit = { 64, 64 };
		struct link_addr *addr, *other;
		struct link *link;

		setrlimit(RLIMIT_NOFILE, &limit);
		_exit(open_loopback(&link, &addr) ||
		      link_addr_open(link, other4, 0, &other, error));
	}
	await_child(child, NULL);
}

/* Its next datagram, but for those that were sent to see whose a socket is, which are no packets.
 */
static struct agent_report expect(struct link_fixture *fixture, struct agent *agent, uint32_t tag)
{
	struct agent_report report;

	do
		assert_true(agent_report(agent, fixture->link, AGENT_PATIENCE_MS, &report));
	while (report.event == AGENT_DATAGRAM && report.bytes == PROBE_BYTES);
	assert_int_equal(report.event, AGENT_DATAGRAM);
	assert_int_equal(report.error, 0);
	assert_int_equal(report.qpn, agent->slot << LINK_SLOT_SHIFT | 7);
	assert_int_equal(report.tag, tag);
	return report;
}

static void expect_all(struct link_fixture *fixture, struct agent *agents, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		if (agents[i].pid)
			send_to_qpn(fixture->addr, loopback4, agents[i].slot << LINK_SLOT_SHIFT | 7,
				    i);
	for (unsigned int i = 0; i < count; i++)
		if (agents[i].pid) {
			/* The kernel knew where it belongs. */
			assert_false(expect(fixture, &agents[i], i).forwarded);
		}
}

/* In many orders: the last socket goes first, those in the middle, or the first ones. */
static void test_any_order_of_ends(void **state)
{
	struct link_fixture *fixture = *state;
	struct agent agents[CROWD];
	unsigned int seed = 11;

	for (unsigned int i = 0; i < CROWD; i++) {
		agent_start_good(&agents[i], 0, loopback4, fixture->link);
		assert_int_equal(agents[i].slot, i + 1);
	}
	expect_all(fixture, agents, CROWD);
	for (unsigned int round = 0; round < 30; round++) {
		unsigned int deaths = 1 + round % 5;

		for (unsigned int i = 0; i < deaths; i++) {
			seed = seed * 1103515245u + 12345;
			struct agent *agent = &agents[(seed >> 16) % CROWD];

			if (!agent->pid)
				continue;
			agent_kill(agent);
			agent->pid = 0;
		}
		expect_all(fixture, agents, CROWD);
		/* Some come anew, and take the lowest slots. */
		for (unsigned int i = 0; i < CROWD && round % 3; i++)
			if (!agents[i].pid)
				agent_start_good(&agents[i], 0, loopback4, fixture->link);
		expect_all(fixture, agents, CROWD);
	}
	for (unsigned int i = 0; i < CROWD; i++)
		if (agents[i].pid)
			agent_stop(&agents[i]);
}

/*
 * The process that holds more than the others is stopped: no other takes the place of its sockets.
 */
static void test_holder_of_the_last_is_stopped(void **state)
{
	struct link_fixture *fixture = *state;
	struct agent agents[STEP], next;
	pid_t child;

	for (unsigned int i = 0; i < STEP; i++)
		agent_start_good(&agents[i], 0, loopback4, fixture->link);
	assert_int_equal(agents[STEP - 1].slot, STEP);
	kill(agents[STEP - 1].pid, SIGSTOP);
	child = fork();
	if (child == 0) {
		usleep(400000);
		kill(agents[STEP - 1].pid, SIGCONT);
		_exit(0);
	}
	agent_start_good(&next, 0, loopback4, fixture->link);
	assert_int_equal(next.slot, STEP + 1);
	expect_all(fixture, &next, 1);
	expect_all(fixture, agents, STEP);
	await_child(child, fixture->link);
	agent_stop(&next);
	for (unsigned int i = 0; i < STEP; i++)
		agent_stop(&agents[i]);
}

/* Another program of the user has put a socket behind the last one: told, and mended by its end. */
static void test_plain_socket_in_the_way(void **state)
{
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_port = htons(4791) };
	struct link_fixture *fixture = *state;
	struct agent agents[STEP];
	struct agent_report report;
	int on = 1, fd;

	if (!network_is_fresh())
		skip();
	for (unsigned int i = 0; i < STEP - 1; i++)
		agent_start_good(&agents[i], 0, loopback4, fixture->link);
	/* Not before: agents are forked. */
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_return_code(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)), errno);
	assert_return_code(bind(fd, (struct sockaddr *)&name, sizeof(name)), errno);
	/* The others have a quarter of the usual time to answer it. */
	own_haste_of_children = 4;
	agent_start(&agents[STEP - 1], 0, loopback4, fixture->link, &report);
	own_haste_of_children = 1;
	assert_int_equal(report.error, -ETIMEDOUT);
	assert_non_null(strstr(report.text, "not uroce"));
	expect_all(fixture, agents, STEP - 1);
	close(fd);
	agent_stop(&agents[STEP - 1]);
	agent_start_good(&agents[STEP - 1], 0, loopback4, fixture->link);
	expect_all(fixture, agents, STEP);
	for (unsigned int i = 0; i < STEP; i++)
		agent_stop(&agents[i]);
}

/* The room of a process whose socket is not among those that one holds is seen all the same. */
static void test_room_of_all_that_one_speaks_to(void **state)
{
	struct link_fixture *fixture = *state;
	struct agent agents[2 * STEP];
	unsigned int last = 2 * STEP - 1;
	struct link_peer *peer;
	uint16_t port = 0xc400;

	for (unsigned int i = 0; i <= last; i++)
		agent_start_good(&agents[i], 0, loopback4, fixture->link);
	assert_int_equal(link_peer_open_own(fixture->addr, loopback4, 0, 0, 64,
					    agents[last].slot << LINK_SLOT_SHIFT | 7, &port, &peer),
			 0);
	assert_false(link_peer_has_room(peer, agents[last].slot, UINT32_MAX));
	/* More than its share of the pool does it no harm. */
	for (unsigned int i = 0; i < last; i++)
		agent_kill(&agents[i]);
	expect_all(fixture, &agents[last], 1);
	link_peer_close(peer);
	agent_stop(&agents[last]);
}

/* A process that reads nothing holds those up that send to it, but for a second only. */
static void test_the_stopped_hold_nobody_up(void **state)
{
	struct link_fixture *fixture = *state;
	struct agent agent;
	struct link_peer *peer;
	uint16_t port = 0xc401;
	uint32_t qpn;

	agent_start_good(&agent, 0, loopback4, fixture->link);
	qpn = agent.slot << LINK_SLOT_SHIFT | 7;
	assert_int_equal(link_peer_open_own(fixture->addr, loopback4, 0, 0, 64, qpn, &port, &peer),
			 0);
	assert_int_equal(kill(agent.pid, SIGSTOP), 0);
	while (link_peer_has_room(peer, agent.slot, BURST_BYTES))
		send_to_qpn(fixture->addr, loopback4, qpn, 0);
	assert_false(link_peer_has_room(peer, agent.slot, BURST_BYTES));
	own_time_set(HASTE);
	usleep(30000);
	assert_true(link_peer_has_room(peer, agent.slot, BURST_BYTES));
	own_time_set(1);
	link_peer_close(peer);
	agent_kill(&agent);
}

/* Processes that come and go do not cost the one that is there a single datagram. */
static void test_nothing_is_lost_to_a_join(void **state)
{
	struct link_fixture *fixture = *state;
	struct link_batch batch = { .buffer = fixture->room,
				    .buffer_bytes = sizeof(fixture->room) };
	uint32_t qpn = link_slot(fixture->link) << LINK_SLOT_SHIFT | 100, tag = 0;
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		for (unsigned int i = 0; i < JOINS; i++) {
			struct link_addr *addr;
			struct link *link;

			if (open_loopback(&link, &addr))
				_exit(1);
			close_loopback(link, addr);
		}
		_exit(0);
	}
	while (waitpid(child, &status, WNOHANG) == 0) {
		send_to_qpn(fixture->addr, loopback4, qpn, ++tag);
		assert_int_equal(receive_wait(fixture->addr, &batch, 1000), 0);
		assert_int_equal(datagram_tag(fixture->room), tag);
		serve(fixture->link);
	}
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_few_descriptors, fresh_network),
		cmocka_unit_test_setup(test_small_limit, fresh_network),
		WITH_LINK(test_any_order_of_ends),
		WITH_LINK(test_holder_of_the_last_is_stopped),
		WITH_LINK(test_plain_socket_in_the_way),
		WITH_LINK(test_room_of_all_that_one_speaks_to),
		WITH_LINK(test_the_stopped_hold_nobody_up),
		WITH_LINK(test_nothing_is_lost_to_a_join),
	};

	own_time_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
