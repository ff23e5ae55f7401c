/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Interfaces, addresses and their changes, seen in a network namespace of the test's own.
 */
#include "link_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "link/netlink/netdev.h"
#include "veth.h"

static const uint8_t address4[16] = { [10] = 0xff, [11] = 0xff, [12] = 192, 0, 2, 1 };
static const uint8_t second4[16] = { [10] = 0xff, [11] = 0xff, [12] = 192, 0, 2, 2 };
static const uint8_t global6[16] = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 };

/* lo is in the list, with both its addresses, IPv4 first. */
static void test_loopback(void **state)
{
	struct netdev *list, netdev;
	unsigned int count, i, found = 0;

	(void)state;
	assert_int_equal(netdev_list(&list, &count), 0);
	for (i = 0; i < count; i++)
		found += strcmp(list[i].name, "lo") == 0;
	assert_int_equal(found, 1);
	free(list);
	assert_int_equal(netdev_read("lo", &netdev), 0);
	assert_true(netdev.loopback);
	assert_true(netdev.up);
	assert_int_equal(netdev.mtu, 65536);
	assert_int_equal(netdev.index, if_nametoindex("lo"));
	assert_true(netdev.address_count >= 1);
	assert_memory_equal(netdev.address[0], loopback4, 16);
	if (access("/proc/net/if_inet6", F_OK) == 0) {
		assert_int_equal(netdev.address_count, 2);
		assert_memory_equal(netdev.address[1], loopback6, 16);
		assert_false(gid_is_link_local(netdev.address[1]));
	}
	assert_int_equal(netdev_read("no-such-netdev", &netdev), -ENODEV);
}

/* Up means that the administrator and the carrier agree. */
static void test_up_and_down(void **state)
{
	struct netdev netdev;

	(void)state;
	create_veth();
	assert_int_equal(netdev_read("urA", &netdev), 0);
	assert_false(netdev.up);
	assert_false(netdev.loopback);
	ip("link set urA up");
	assert_int_equal(netdev_read("urA", &netdev), 0);
	assert_false(netdev.up);
	ip("link set urB up");
	assert_true(carrier_comes_up("urA"));
	ip("link set urA mtu 9000");
	assert_int_equal(netdev_read("urA", &netdev), 0);
	assert_int_equal(netdev.mtu, 9000);
	assert_memory_equal(netdev.mac, "\x02\0\0\0\0\x0a", 6);
}

/* Order of addresses: IPv4, global, link-local; those that DAD has not confirmed are left out. */
static void test_addresses_in_order(void **state)
{
	struct netdev netdev;

	(void)state;
	create_veth();
	ip("link set urB up");
	ip("link set urA addrgenmode none");
	ip("link set urA up");
	ip("addr add 2001:db8::1/64 dev urA nodad");
	ip("addr add fe80::1/64 dev urA nodad");
	ip("addr add 192.0.2.1/24 dev urA");
	ip("addr add 192.0.2.2/24 dev urA");
	/* Tentative for a second or more. */
	ip("addr add 2001:db8::2/64 dev urA");
	assert_int_equal(netdev_read("urA", &netdev), 0);
	assert_int_equal(netdev.address_count, 4);
	assert_memory_equal(netdev.address[0], address4, 16);
	assert_memory_equal(netdev.address[1], second4, 16);
	assert_memory_equal(netdev.address[2], global6, 16);
	assert_int_equal(netdev.address[3][0], 0xfe);
	assert_false(gid_is_link_local(netdev.address[0]));
	assert_false(gid_is_link_local(netdev.address[2]));
	assert_true(gid_is_link_local(netdev.address[3]));
	/* Addresses of one interface are not another's. */
	assert_int_equal(netdev_read("urB", &netdev), 0);
	assert_true(netdev.address_count == 0 || gid_is_link_local(netdev.address[0]));
}

/* More addresses than there is room for: the first ones, and some of each kind. */
static void test_many_addresses(void **state)
{
	struct netdev netdev;
	FILE *batch;
	int i;

	(void)state;
	create_veth();
	batch = popen("ip -batch -", "we");
	assert_non_null(batch);
	for (i = 1; i <= NETDEV_MAX_ADDRESSES + 8; i++)
		fprintf(batch, "addr add 192.0.%d.%d/32 dev urA\n", 2 + i / 200, i % 200);
	for (i = 1; i <= 40; i++)
		fprintf(batch, "addr add 2001:db8::%d/64 dev urA nodad\n", i);
	assert_int_equal(pclose(batch), 0);
	assert_int_equal(netdev_read("urA", &netdev), 0);
	assert_int_equal(netdev.address_count, NETDEV_MAX_ADDRESSES);
	assert_int_equal(netdev.left_out, 8 + 40);
	assert_memory_equal(netdev.address[0], address4, 16);
	assert_true(gid_is_ipv4(netdev.address[NETDEV_MAX_ADDRESSES - 33]));
	for (i = NETDEV_MAX_ADDRESSES - 32; i < NETDEV_MAX_ADDRESSES; i++)
		assert_int_equal(netdev.address[i][0], 0x20);
}

/* A link-local address is used with its interface's index as scope. */
static void test_link_local_endpoint(void **state)
{
	struct link_batch batch = { .buffer_bytes = LINK_MAX_BYTES + 1 };
	char error[LINK_ERROR_TEXT];
	uint8_t bytes[40];
	struct iovec piece = { bytes, sizeof(bytes) };
	struct netdev netdev;
	struct link *link;
	struct link_addr *addr;
	struct link_peer *peer;
	uint16_t port = 0xc000;
	int i, result = -EAGAIN;

	(void)state;
	create_veth();
	ip("link set urB up");
	ip("link set urA addrgenmode none");
	ip("link set urA up");
	assert_true(carrier_comes_up("urA"));
	ip("addr add fe80::1/64 dev urA nodad");
	assert_int_equal(netdev_read("urA", &netdev), 0);
	assert_int_equal(netdev.address_count, 1);
	assert_int_equal(link_open(&link, error), 0);
	assert_int_equal(link_addr_open(link, netdev.address[0], 0, &addr, error), -EINVAL);
	assert_int_equal(link_addr_open(link, netdev.address[0], netdev.index, &addr, error), 0);
	assert_int_equal(link_peer_open(addr,
					&(struct link_dst){ .gid = netdev.address[0],
							    .scope_id = netdev.index },
					&port, &peer),
			 0);
	put_datagram(bytes, sizeof(bytes), (link_slot(link) << LINK_SLOT_SHIFT | 100), 1);
	batch.buffer = malloc(batch.buffer_bytes);
	/*
	 * The kernel adds the route of the address a little later; until then it looks for a
	 * neighbour.
	 */
	for (i = 0; i < 1000 && result; i++) {
		assert_int_equal(link_send(peer, &piece, 1, 0), 0);
		result = receive_wait(addr, &batch, 20);
	}
	assert_int_equal(result, 0);
	assert_memory_equal(batch.src, netdev.address[0], 16);
	free(batch.buffer);
	link_peer_close(peer);
	link_addr_close(addr);
	link_close(link);
}

static bool becomes_readable(int fd, int timeout_ms)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };

	return poll(&wait, 1, timeout_ms) == 1;
}

/* Wait until an interface that was just made has stopped changing. */
static void settle(struct netdev_watch *watch)
{
	while (becomes_readable(netdev_watch_fd(watch), 50))
		assert_true(netdev_watch_drain(watch) >= 0);
}

/* Changes of links and addresses make the descriptor readable until they are read. */
static void test_watch(void **state)
{
	struct netdev_watch *watch;

	(void)state;
	create_veth();
	assert_int_equal(netdev_watch_open(&watch), 0);
	assert_true(fcntl(netdev_watch_fd(watch), F_GETFD) & FD_CLOEXEC);
	settle(watch);
	assert_int_equal(netdev_watch_drain(watch), 0);
	ip("addr add 192.0.2.1/24 dev urA");
	assert_true(becomes_readable(netdev_watch_fd(watch), CHILD_TIMEOUT_MS));
	assert_true(netdev_watch_drain(watch) >= 1);
	assert_false(becomes_readable(netdev_watch_fd(watch), 20));
	ip("link set urA up");
	assert_true(becomes_readable(netdev_watch_fd(watch), CHILD_TIMEOUT_MS));
	settle(watch);
	ip("link del urA");
	assert_true(becomes_readable(netdev_watch_fd(watch), CHILD_TIMEOUT_MS));
	assert_true(netdev_watch_drain(watch) >= 2);
	netdev_watch_abandon(watch);
	netdev_watch_close(watch);
}

/* More changes than the socket can hold are reported as changes and not as an error. */
static void test_watch_overrun(void **state)
{
	struct netdev_watch *watch;
	int small = 1, i;

	(void)state;
	create_veth();
	assert_int_equal(netdev_watch_open(&watch), 0);
	setsockopt(netdev_watch_fd(watch), SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	for (i = 0; i < 10; i++)
		ip(i % 2 ? "link set urA down" : "link set urA up");
	assert_true(netdev_watch_drain(watch) >= 1);
	netdev_watch_close(watch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_loopback, enter_new_netns),
		cmocka_unit_test_setup(test_up_and_down, enter_new_netns),
		cmocka_unit_test_setup(test_addresses_in_order, enter_new_netns),
		cmocka_unit_test_setup(test_many_addresses, enter_new_netns),
		cmocka_unit_test_setup(test_link_local_endpoint, enter_new_netns),
		cmocka_unit_test_setup(test_watch, enter_new_netns),
		cmocka_unit_test_setup(test_watch_overrun, enter_new_netns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
