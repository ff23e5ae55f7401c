/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The link within one process: slots, addresses, peers, sending and receiving.
 */
#include "link_fixture.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static char error[LINK_ERROR_TEXT];
static uint8_t room[LINK_MAX_BYTES + 1];

/* Slots are unique, and a slot is not used again soon after it was closed. */
static void test_slots_are_unique(void **state)
{
	enum { MANY = 100 };
	static bool seen[LINK_SLOTS];
	struct link *links[MANY];

	(void)state;
	for (unsigned int i = 0; i < MANY; i++) {
		assert_int_equal(link_open(&links[i], error), 0);
		assert_true(link_slot(links[i]) < LINK_SLOTS);
		assert_false(seen[link_slot(links[i])]);
		seen[link_slot(links[i])] = true;
	}
	link_close(links[17]);
	assert_int_equal(link_open(&links[17], error), 0);
	assert_false(seen[link_slot(links[17])]);
	for (unsigned int i = 0; i < MANY; i++)
		link_close(links[i]);
}

/*
 * An address that is opened twice is one reference-counted object.  An address that is not local is
 * refused with a reason.
 */
static void test_addresses(void **state)
{
	static const uint8_t any4[16] = { [10] = 0xff, [11] = 0xff };
	static const uint8_t any6[16];
	static const uint8_t group4[16] = { [10] = 0xff, [11] = 0xff, [12] = 224, [15] = 1 };
	static const uint8_t group6[16] = { 0xff, 0x02, [15] = 1 };
	static const uint8_t foreign4[16] = { [10] = 0xff, [11] = 0xff, 192, 0, 2, 1 };
	struct link_fixture *fixture = *state;
	struct link_addr *again, *six;

	assert_int_equal(link_addr_open(fixture->link, loopback4, 0, &again, error), 0);
	assert_ptr_equal(again, fixture->addr);
	link_addr_close(again);
	assert_int_equal(link_addr_open(fixture->link, loopback6, 0, &six, error), 0);
	assert_memory_equal(link_addr_gid(six), loopback6, 16);
	assert_true(link_addr_receive_buffer(six) >= 200000);
	assert_true(link_addr_fd(six) != link_addr_fd(fixture->addr));
	link_addr_close(six);
	assert_int_equal(link_addr_open(fixture->link, any4, 0, &again, error), -EINVAL);
	assert_int_equal(link_addr_open(fixture->link, any6, 0, &again, error), -EINVAL);
	assert_int_equal(link_addr_open(fixture->link, group4, 0, &again, error), -EINVAL);
	assert_int_equal(link_addr_open(fixture->link, group6, 0, &again, error), -EINVAL);
	assert_int_equal(link_addr_open(fixture->link, foreign4, 0, &again, error), -EADDRNOTAVAIL);
	assert_non_null(strstr(error, "192.0.2.1"));
}

static void check_exchange(struct link *link, struct link_addr *addr, const uint8_t gid[16])
{
	struct link_batch batch = { .buffer = room, .buffer_bytes = sizeof(room) };
	uint8_t bytes[64];
	struct iovec pieces[2] = { { bytes, 24 }, { bytes + 24, 40 } };
	uint16_t port = 0xd123;
	struct link_peer *peer;

	put_datagram(bytes, sizeof(bytes), link_slot(link) << LINK_SLOT_SHIFT | 5, 77);
	assert_int_equal(link_receive(addr, &batch), -EAGAIN);
	assert_int_equal(link_peer_open(addr, &(struct link_dst){ .gid = gid }, &port, &peer), 0);
	assert_int_equal(port, 0xd123);
	assert_int_equal(link_send(peer, pieces, 2, 0), 0);
	assert_int_equal(receive_wait(addr, &batch, CHILD_TIMEOUT_MS), 0);
	assert_int_equal(batch.bytes, 64);
	assert_int_equal(batch.segment, 64);
	assert_int_equal(batch.src_port, port);
	assert_memory_equal(batch.src, gid, 16);
	assert_memory_equal(room, bytes, 64);
	assert_ptr_equal(batch.addr, addr);
	/* With a segment size equal to its length it is a single datagram as well. */
	assert_int_equal(link_send(peer, pieces, 2, 64), 0);
	assert_int_equal(receive_wait(addr, &batch, CHILD_TIMEOUT_MS), 0);
	assert_int_equal(batch.bytes, 64);
	assert_int_equal(batch.segment, 64);
	link_peer_close(peer);
}

/* One datagram arrives whole, with its sender, over IPv4 and IPv6. */
static void test_single_datagram(void **state)
{
	struct link_fixture *fixture = *state;
	struct link_addr *six;

	check_exchange(fixture->link, fixture->addr, loopback4);
	assert_int_equal(link_addr_open(fixture->link, loopback6, 0, &six, error), 0);
	check_exchange(fixture->link, six, loopback6);
	link_addr_close(six);
}

/* A burst leaves with one call and arrives merged, with the right size of segment. */
static void test_burst_arrives_merged(void **state)
{
	static const struct {
		unsigned int segment, count, last;
	} bursts[] = { { 40, 128, 40 }, { 40, 64, 12 }, { 4128, 15, 4128 }, { 1056, 2, 100 } };
	struct link_fixture *fixture = *state;
	struct link_batch batch = { .buffer = room, .buffer_bytes = sizeof(room) };
	uint32_t qpn = link_slot(fixture->link) << LINK_SLOT_SHIFT | 9;
	uint8_t *bytes = malloc(LINK_MAX_BYTES);
	uint16_t port = 0xc001;
	struct link_peer *peer;
	unsigned int i, n;

	/* Linux 4.18 and later can split a burst into 64 segments. */
	assert_uint_in_range(link_max_segments(fixture->link), 64, LINK_MAX_SEGMENTS);
	assert_int_equal(
		link_peer_open(fixture->addr, &(struct link_dst){ .gid = loopback4 }, &port, &peer),
		0);
	for (i = 0; i < sizeof(bursts) / sizeof(bursts[0]); i++) {
		unsigned int total = bursts[i].segment * (bursts[i].count - 1) + bursts[i].last;
		struct iovec piece = { bytes, total };

		if (bursts[i].count > link_max_segments(fixture->link))
			continue;
		for (n = 0; n < bursts[i].count; n++)
			put_datagram(bytes + n * bursts[i].segment, bursts[i].last, qpn, n);
		assert_int_equal(link_send(peer, &piece, 1, bursts[i].segment), 0);
		assert_int_equal(receive_wait(fixture->addr, &batch, CHILD_TIMEOUT_MS), 0);
		assert_int_equal(batch.bytes, total);
		assert_int_equal(batch.segment, bursts[i].segment);
		assert_memory_equal(room, bytes, total);
	}
	link_peer_close(peer);
	free(bytes);
}

/*
 * A datagram too short for a destination QPN is received by the broker, which forwards it so that
 * it is counted.
 */
static void test_short_datagram_is_passed_on(void **state)
{
	struct link_fixture *fixture = *state;
	struct link_batch batch = { .buffer = room, .buffer_bytes = sizeof(room) };
	uint8_t bytes[7] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	struct pollfd wait = { .fd = link_broker_fd(fixture->link), .events = POLLIN };
	uint16_t port = 0xc001;
	struct link_peer *peer;
	unsigned int length;

	assert_int_equal(
		link_peer_open(fixture->addr, &(struct link_dst){ .gid = loopback4 }, &port, &peer),
		0);
	for (length = 0; length <= sizeof(bytes); length++) {
		struct iovec piece = { bytes, length };

		assert_int_equal(link_send(peer, &piece, 1, 0), 0);
		assert_int_equal(poll(&wait, 1, CHILD_TIMEOUT_MS), 1);
		assert_int_equal(link_delivery_receive(fixture->link, &batch), 0);
		assert_ptr_equal(batch.addr, fixture->addr);
		assert_int_equal(batch.reason, LINK_MISDIRECTED);
		assert_int_equal(batch.bytes, length);
	}
	link_peer_close(peer);
}

/* The kernel drops datagrams that are not read, and the drops are counted. */
static void test_overflow_is_counted(void **state)
{
	struct link_fixture *fixture = *state;
	struct link_counters counters;
	uint8_t *bytes = calloc(1, 61440);
	struct iovec piece = { bytes, 61440 };
	uint16_t port = 0xc001;
	struct link_peer *peer;
	unsigned int i;

	put_datagram(bytes, 4096, (link_slot(fixture->link) << LINK_SLOT_SHIFT | 100), 0);
	assert_int_equal(
		link_peer_open(fixture->addr, &(struct link_dst){ .gid = loopback4 }, &port, &peer),
		0);
	for (i = 0; i < 400; i++)
		link_send(peer, &piece, 1, 4096);
	link_counters(fixture->link, &counters);
	assert_true(counters.receive_overflow > 0);
	assert_true(counters.receive_overflow < 400 * 15);
	link_peer_close(peer);
	free(bytes);
}

/*
 * In a forked child the link closes its descriptors at once and refuses calls; it can still be
 * closed in order.
 */
static void test_abandon(void **state)
{
	struct link_fixture *fixture = *state;
	struct iovec piece = { room, 40 };
	struct link_batch batch = { .buffer = room, .buffer_bytes = sizeof(room) };
	int fd = link_addr_fd(fixture->addr), control = link_broker_fd(fixture->link);
	uint16_t port = 0xc001;
	struct link_peer *peer;
	struct link_addr *other;
	pid_t child;

	assert_int_equal(
		link_peer_open(fixture->addr, &(struct link_dst){ .gid = loopback4 }, &port, &peer),
		0);
	link_fork_wait_openers(fixture->link);
	link_fork_prepare(fixture->link);
	child = fork();
	if (child)
		link_fork_parent(fixture->link);
	if (child == 0) {
		bool good;

		link_abandon(fixture->link);
		good = link_send(peer, &piece, 1, 0) == -EOWNERDEAD &&
		       link_receive(fixture->addr, &batch) == -EOWNERDEAD &&
		       link_delivery_receive(fixture->link, &batch) == -EOWNERDEAD &&
		       link_addr_open(fixture->link, loopback6, 0, &other, error) == -EOWNERDEAD &&
		       close(fd) < 0 && errno == EBADF && close(control) < 0 && errno == EBADF;
		link_peer_close(peer);
		link_addr_close(fixture->addr);
		link_close(fixture->link);
		/* The child may open a link again and gets a slot of its own. */
		good = good && link_open(&fixture->link, error) == 0;
		_exit(good ? 0 : 1);
	}
	await_child(child, NULL);
	/* The parent's link still works. */
	assert_int_equal(link_send(peer, &piece, 1, 0), 0);
	link_peer_close(peer);
}

static void set_limit(rlim_t soft, rlim_t hard)
{
	struct rlimit limit = { soft, hard };

	if (setrlimit(RLIMIT_NOFILE, &limit))
		_exit(2);
}

/*
 * When no descriptors are left the soft limit is raised; at the hard limit the error gives the
 * reason.
 */
static void test_descriptor_limit(void **state)
{
	struct link_addr *addr;
	struct link *link;
	pid_t child = fork();

	(void)state;
	if (child == 0) {
		/* Descriptors that are open, and 3 of the link itself */
		rlim_t used = (rlim_t)dup(0) + 3;
		struct rlimit limit;
		int result;

		close((int)used - 3);
		set_limit(used + 3, 2000);
		if (open_loopback(&link, &addr))
			_exit(3);
		getrlimit(RLIMIT_NOFILE, &limit);
		if (limit.rlim_cur <= used + 3 || limit.rlim_cur >= 2000)
			_exit(4);
		link_addr_close(addr);
		set_limit(used + 3, used + 3);
		result = link_addr_open(link, loopback4, 0, &addr, error);
		if (result != -EMFILE || !strstr(error, "ulimit -n"))
			_exit(5);
		_exit(0);
	}
	await_child(child, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_slots_are_unique, enter_new_netns),
		WITH_LINK(test_addresses),
		WITH_LINK(test_single_datagram),
		WITH_LINK(test_burst_arrives_merged),
		WITH_LINK(test_short_datagram_is_passed_on),
		WITH_LINK(test_overflow_is_counted),
		WITH_LINK(test_abandon),
		cmocka_unit_test_setup(test_descriptor_limit, enter_new_netns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
