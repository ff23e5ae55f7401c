/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Several processes share one UDP port: joining, steering, forwarding, users, network namespaces.
 */
#include "link_fixture.h"

#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char error[LINK_ERROR_TEXT];

static void expect_silence(struct link_child *child, struct link *own)
{
	struct child_report report;

	assert_false(child_report(child, own, 20, &report));
}

static void check_steering(struct link_fixture *fixture, struct link_child *children,
			   unsigned int count, const uint8_t gid[16])
{
	struct link_addr *addr;
	unsigned int i;

	assert_int_equal(link_addr_open(fixture->link, gid, 0, &addr, error), 0);
	for (i = 0; i < count; i++)
		send_to_qpn(addr, gid, children[i].slot << LINK_SLOT_SHIFT | 100, i);
	for (i = 0; i < count; i++) {
		struct child_report report = child_expect_datagram(
			&children[i], fixture->link, children[i].slot << LINK_SLOT_SHIFT | 100, i);

		/* The kernel has delivered it, not the process of another socket. */
		assert_false(report.forwarded);
		expect_silence(&children[i], fixture->link);
	}
	link_addr_close(addr);
}

/* Each process has a slot of its own and gets what is for its queue pairs, and only that. */
static void test_steering(void **state)
{
	struct link_fixture *fixture = *state;
	struct link_child children[5];
	uint64_t seen = 1ull << link_slot(fixture->link);
	unsigned int i;

	for (i = 0; i < 5; i++) {
		child_start_good(&children[i], 0, loopback4, fixture->link);
		assert_false(seen & 1ull << children[i].slot);
		seen |= 1ull << children[i].slot;
	}
	check_steering(fixture, children, 5, loopback4);
	for (i = 0; i < 5; i++)
		child_stop(&children[i]);
}

/* The same over IPv6; here the children open the address before the test's process does. */
static void test_steering_ipv6(void **state)
{
	struct link_fixture *fixture = *state;
	struct link_child children[2];

	child_start_good(&children[0], 0, loopback6, fixture->link);
	child_start_good(&children[1], 0, loopback6, fixture->link);
	check_steering(fixture, children, 2, loopback6);
	child_stop(&children[0]);
	child_stop(&children[1]);
}

/*
 * The process that opened the address first is killed.  The broker keeps its socket in the group,
 * so that the indexes of the other sockets stay the same.  The other processes still receive, and
 * new ones can join.
 */
static void test_first_process_dies(void **state)
{
	struct link_fixture fixture;
	struct link_child first, others[3];

	(void)state;
	child_start_good(&first, 0, other4, NULL);
	child_start_good(&others[0], 0, other4, NULL);
	child_start_good(&others[1], 0, other4, NULL);
	child_kill(&first);
	child_start_good(&others[2], 0, other4, NULL);
	assert_int_equal(link_open(&fixture.link, error), 0);
	check_steering(&fixture, others, 3, other4);
	link_close(fixture.link);
	child_stop(&others[0]);
	child_stop(&others[1]);
	child_stop(&others[2]);
}

/* A merged batch with datagrams for two processes: those of the second are forwarded unchanged. */
static void test_foreign_datagrams_are_forwarded(void **state)
{
	struct link_fixture *fixture = *state;
	static uint8_t large[LINK_MAX_BYTES];
	const struct link_batch batch = { .addr = fixture->addr, .src_port = 7 };
	struct link_child a, b;
	struct child_report report;
	struct link_counters counters;
	uint8_t bytes[6 * 1000];
	struct iovec piece = { bytes, sizeof(bytes) };
	uint16_t port = 0xc777;
	struct link_peer *peer;
	unsigned int i;

	child_start_good(&a, 0, loopback4, fixture->link);
	child_start_good(&b, 0, loopback4, fixture->link);
	for (i = 0; i < 6; i++)
		put_datagram(bytes + 1000 * i, 1000,
			     (i % 2 ? b.slot : a.slot) << LINK_SLOT_SHIFT | i, i);
	assert_int_equal(
		link_peer_open(fixture->addr, &(struct link_dst){ .gid = loopback4 }, &port, &peer),
		0);
	assert_int_equal(link_send(peer, &piece, 1, 1000), 0);
	for (i = 0; i < 6; i++) {
		struct link_child *child = i % 2 ? &b : &a;

		report = child_expect_datagram(child, fixture->link,
					       child->slot << LINK_SLOT_SHIFT | i, i);
		assert_int_equal(report.bytes, 1000);
		assert_int_equal(report.segments, i % 2 ? 1 : 6);
		assert_int_equal(report.src_port, port);
		assert_int_equal(report.forwarded, i % 2);
	}
	link_peer_close(peer);

	/* Forwarded by this process: the largest datagram, to a process, and one to no process */
	put_datagram(large, sizeof(large), b.slot << LINK_SLOT_SHIFT | 100, 99);
	assert_int_equal(link_forward(&batch, large, sizeof(large)), 0);
	child_expect_datagram(&b, fixture->link, b.slot << LINK_SLOT_SHIFT | 100, 99);
	put_datagram(large, 40, 60 << LINK_SLOT_SHIFT, 99);
	assert_int_equal(link_forward(&batch, large, 40), 0);
	assert_int_equal(link_forward(&batch, large, 0), -EINVAL);
	link_counters(fixture->link, &counters);
	assert_int_equal(counters.forwarded, 2);
	child_stop(&a);
	child_stop(&b);
}

/* Datagrams forwarded to a process that does not read them are lost, and do not block others. */
static void test_full_delivery_queue(void **state)
{
	struct link_fixture *fixture = *state;
	const struct link_batch batch = { .addr = fixture->addr, .src_port = 7 };
	struct link_child stopped, other;
	uint8_t bytes[40];

	child_start_good(&stopped, 0, loopback4, fixture->link);
	child_start_good(&other, 0, loopback4, fixture->link);
	kill(stopped.pid, SIGSTOP);
	put_datagram(bytes, sizeof(bytes), stopped.slot << LINK_SLOT_SHIFT, 1);
	for (unsigned int i = 0; i < 100000; i++)
		while (link_forward(&batch, bytes, sizeof(bytes)) == -EAGAIN)
			sched_yield();
	put_datagram(bytes, sizeof(bytes), other.slot << LINK_SLOT_SHIFT, 2);
	while (link_forward(&batch, bytes, sizeof(bytes)) == -EAGAIN)
		sched_yield();
	child_expect_datagram(&other, fixture->link, other.slot << LINK_SLOT_SHIFT, 2);
	child_kill(&stopped);
	child_stop(&other);
}

/*
 * Processes of one unprivileged user share the port as root's do; another user gets an error that
 * explains it.
 */
static void test_users(void **state)
{
	struct link_fixture *fixture = *state;
	struct link_addr *addr;
	struct link_child children[3];
	struct child_report report;

	need_root();
	child_start_good(&children[0], CHILD_NOBODY, other4, fixture->link);
	child_start_good(&children[1], CHILD_NOBODY, other4, fixture->link);
	/* A sender may be of any user; only receivers need the port. */
	send_to_qpn(fixture->addr, other4, children[0].slot << LINK_SLOT_SHIFT | 100, 5);
	send_to_qpn(fixture->addr, other4, children[1].slot << LINK_SLOT_SHIFT | 100, 6);
	child_expect_datagram(&children[0], NULL, children[0].slot << LINK_SLOT_SHIFT | 100, 5);
	child_expect_datagram(&children[1], NULL, children[1].slot << LINK_SLOT_SHIFT | 100, 6);

	/* Root is refused where the user nobody was first, and the other way round. */
	assert_int_equal(link_addr_open(fixture->link, other4, 0, &addr, error), -EADDRINUSE);
	fprintf(stderr, "%s\n", error);
	assert_non_null(strstr(error, "4791"));
	assert_non_null(strstr(error, "127.0.0.2"));
	assert_non_null(strstr(error, "user 65534"));
	assert_non_null(strstr(error, "one user per address"));
	child_start(&children[2], CHILD_NOBODY, loopback4, fixture->link, &report);
	assert_int_equal(report.error, -EADDRINUSE);
	assert_non_null(strstr(report.text, "user 0"));
	child_stop(&children[0]);
	child_stop(&children[1]);
	child_stop(&children[2]);
}

static int bind_udp(const char *address, bool shared)
{
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_port = htons(4791) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1;

	name.sin_addr.s_addr = htonl(strcmp(address, "0.0.0.0") ? 0x7f000002 : 0);
	if (shared)
		assert_return_code(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)),
				   errno);
	assert_return_code(bind(fd, (struct sockaddr *)&name, sizeof(name)), errno);
	return fd;
}

/* Another program of the same user has the port: refused at once, with a reason. */
static void test_port_of_other_program(void **state)
{
	struct link_fixture *fixture = *state;
	struct link_addr *addr;
	int fd;

	if (!in_new_netns())
		skip();
	fd = bind_udp("127.0.0.2", false);
	assert_int_equal(link_addr_open(fixture->link, other4, 0, &addr, error), -EADDRINUSE);
	assert_non_null(strstr(error, "not uroce"));
	close(fd);
	fd = bind_udp("127.0.0.2", true);
	assert_int_equal(link_addr_open(fixture->link, other4, 0, &addr, error), -EADDRINUSE);
	close(fd);
	assert_int_equal(link_addr_open(fixture->link, other4, 0, &addr, error), 0);
	link_addr_close(addr);
}

/* A program that binds to the port later, with SO_REUSEPORT, receives none of our datagrams. */
static void test_later_plain_socket_gets_nothing(void **state)
{
	struct link_fixture *fixture = *state;
	struct link_child child;
	struct link_addr *addr;
	unsigned int i;
	char byte;
	int fd;

	if (!in_new_netns())
		skip();
	assert_int_equal(link_addr_open(fixture->link, other4, 0, &addr, error), 0);
	fd = bind_udp("127.0.0.2", true);
	child_start_good(&child, 0, other4, fixture->link);
	for (i = 0; i < 200; i++)
		send_to_qpn(addr, other4, child.slot << LINK_SLOT_SHIFT | i, i);
	for (i = 0; i < 200; i++)
		child_expect_datagram(&child, fixture->link, child.slot << LINK_SLOT_SHIFT | i, i);
	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
	close(fd);
	child_stop(&child);
	link_addr_close(addr);
}

/* In another network namespace slot 0 and the same address are free. */
static void test_network_namespaces_are_apart(void **state)
{
	struct link_fixture *fixture = *state;
	struct link_child inside, outside;
	struct link_peer *peer;
	uint16_t port = 0xc000;

	child_start_good(&outside, 0, loopback4, fixture->link);
	/* The peer's socket stays in the old namespace. */
	assert_int_equal(
		link_peer_open(fixture->addr, &(struct link_dst){ .gid = loopback4 }, &port, &peer),
		0);
	enter_new_netns(state);
	if (!in_new_netns()) {
		fprintf(stderr, "SKIPPED: no network namespaces here\n");
		child_stop(&outside);
		*state = fixture;
		link_peer_close(peer);
		skip();
	}
	*state = fixture;
	child_start_good(&inside, 0, loopback4, NULL);
	assert_int_equal(inside.slot, 0);
	send_to_qpn(fixture->addr, loopback4, outside.slot << LINK_SLOT_SHIFT | 100, 1);
	child_expect_datagram(&outside, fixture->link, outside.slot << LINK_SLOT_SHIFT | 100, 1);
	expect_silence(&inside, NULL);
	link_peer_close(peer);
	child_stop(&inside);
	child_stop(&outside);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_LINK(test_steering),
		WITH_LINK(test_steering_ipv6),
		cmocka_unit_test_setup(test_first_process_dies, enter_new_netns),
		WITH_LINK(test_foreign_datagrams_are_forwarded),
		WITH_LINK(test_full_delivery_queue),
		WITH_LINK(test_users),
		WITH_LINK(test_port_of_other_program),
		WITH_LINK(test_later_plain_socket_gets_nothing),
		WITH_LINK(test_network_namespaces_are_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
