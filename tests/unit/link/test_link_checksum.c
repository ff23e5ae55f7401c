/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Datagrams without a UDP checksum, as the kernel's soft RoCE and some adapters send them: over
 * IPv4 any sender may omit it; over IPv6 the kernel drops them unless the socket allows them.
 */
#include "link_fixture.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef UDP_NO_CHECK6_TX
#define UDP_NO_CHECK6_TX 101
#endif

enum { DATAGRAM_BYTES = 40 };

static const uint8_t group6[16] = { 0xff, 0x15, [14] = 0x12, [15] = 0x34 };

static char error[LINK_ERROR_TEXT];
static uint8_t buffer[LINK_MAX_BYTES + 1];

/* A socket whose datagrams have a checksum of 0. */
static int open_sender(int family)
{
	const int on = 1;
	int sock = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_return_code(sock, errno);
	if (family == AF_INET)
		assert_return_code(setsockopt(sock, SOL_SOCKET, SO_NO_CHECK, &on, sizeof(on)),
				   errno);
	else
		assert_return_code(setsockopt(sock, IPPROTO_UDP, UDP_NO_CHECK6_TX, &on, sizeof(on)),
				   errno);
	return sock;
}

static void send_unchecked(int sock, const struct sockaddr *to, socklen_t bytes, uint32_t qpn,
			   uint32_t tag)
{
	uint8_t datagram[DATAGRAM_BYTES];

	put_datagram(datagram, sizeof(datagram), qpn, tag);
	/* On a busy host an interface that has come up may get its routes only seconds later. */
	for (unsigned int tries = 0; sendto(sock, datagram, sizeof(datagram), 0, to, bytes) < 0;
	     tries++) {
		assert_true(tries < 20000);
		usleep(1000);
	}
}

static void check_arrives(struct link_addr *addr, uint32_t qpn, uint32_t tag)
{
	struct link_batch batch = { .buffer = buffer, .buffer_bytes = sizeof(buffer) };

	assert_int_equal(receive_wait(addr, &batch, CHILD_TIMEOUT_MS), 0);
	assert_int_equal(batch.bytes, DATAGRAM_BYTES);
	assert_int_equal(datagram_qpn(batch.buffer), qpn);
	assert_int_equal(datagram_tag(batch.buffer), tag);
	link_release(&batch);
}

static void test_ipv4(void **state)
{
	struct link_fixture *fixture = *state;
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(4791),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	uint32_t qpn = link_slot(fixture->link) << LINK_SLOT_SHIFT | 5;
	int sock = open_sender(AF_INET);

	send_unchecked(sock, (struct sockaddr *)&to, sizeof(to), qpn, 1);
	check_arrives(fixture->addr, qpn, 1);
	close(sock);
}

/* Also for the slot of a second process: the option is set for each member of the group. */
static void test_ipv6(void **state)
{
	struct link_fixture *fixture = *state;
	struct sockaddr_in6 to = { .sin6_family = AF_INET6,
				   .sin6_port = htons(4791),
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	uint32_t qpn = link_slot(fixture->link) << LINK_SLOT_SHIFT | 5;
	int sock = open_sender(AF_INET6);
	struct link_child child;
	struct link_addr *addr;
	uint32_t other;

	assert_int_equal(link_addr_open(fixture->link, loopback6, 0, &addr, error), 0);
	child_start_good(&child, 0, loopback6, fixture->link);
	assert_int_not_equal(child.slot, link_slot(fixture->link));
	other = child.slot << LINK_SLOT_SHIFT | 5;

	send_unchecked(sock, (struct sockaddr *)&to, sizeof(to), qpn, 2);
	check_arrives(addr, qpn, 2);
	send_unchecked(sock, (struct sockaddr *)&to, sizeof(to), other, 3);
	child_expect_datagram(&child, fixture->link, other, 3);

	child_stop(&child);
	link_addr_close(addr);
	close(sock);
}

static void test_ipv6_group(void **state)
{
	struct link_fixture *fixture = *state;
	struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_port = htons(4791) };
	struct link_batch batch = { .buffer = buffer, .buffer_bytes = sizeof(buffer) };
	struct link_group *group;
	struct pollfd wait;
	unsigned int interface;
	int index, sock;

	/* A loopback interface carries no IPv6 multicast. */
	if (!in_new_netns() || system("ip link add csA type veth peer name csB && "
				      "ip address add fd77::1/64 dev csA nodad && "
				      "ip link set csA up && ip link set csB up")) {
		fprintf(stderr, "no interface can be made here\n");
		skip();
	}
	interface = if_nametoindex("csA");
	index = (int)interface;
	sock = open_sender(AF_INET6);
	assert_return_code(setsockopt(sock, IPPROTO_IPV6, IPV6_MULTICAST_IF, &index, sizeof(index)),
			   errno);
	assert_int_equal(link_group_open(fixture->link, group6, interface, &group, error), 0);
	memcpy(&to.sin6_addr, group6, sizeof(group6));
	send_unchecked(sock, (struct sockaddr *)&to, sizeof(to), 0xffffff, 4);

	wait = (struct pollfd){ .fd = link_group_fd(group), .events = POLLIN };
	assert_int_equal(poll(&wait, 1, CHILD_TIMEOUT_MS), 1);
	assert_int_equal(link_group_receive(group, &batch), 0);
	assert_int_equal(batch.bytes, DATAGRAM_BYTES);
	assert_int_equal(datagram_tag(batch.buffer), 4);
	link_release(&batch);
	link_group_close(group);
	close(sock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_LINK(test_ipv4),
		WITH_LINK(test_ipv6),
		WITH_LINK(test_ipv6_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
