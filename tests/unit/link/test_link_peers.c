/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Peers: source ports, hop limits and traffic classes, and their values on the wire
 */
#include "link_fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static char error[LINK_ERROR_TEXT];

struct fixture {
	struct link *link;
	struct link_addr *addr;
	struct link_addr *addr6;
};

static int open_both(void **state)
{
	static struct fixture fixture;

	enter_new_netns(state);
	*state = &fixture;
	if (open_loopback(&fixture.link, &fixture.addr))
		return -1;
	if (link_addr_open(fixture.link, loopback6, 0, &fixture.addr6, error)) {
		fprintf(stderr, "%s\n", error);
		return -1;
	}
	return 0;
}

static int close_both(void **state)
{
	struct fixture *fixture = *state;

	link_addr_close(fixture->addr6);
	close_loopback(fixture->link, fixture->addr);
	return 0;
}

static struct link_peer *open_peer(struct link_addr *addr, uint8_t traffic_class, uint8_t hop_limit,
				   uint16_t *port)
{
	struct link_peer *peer;

	assert_int_equal(link_peer_open(addr,
					&(struct link_dst){ .gid = link_addr_gid(addr),
							    .traffic_class = traffic_class,
							    .hop_limit = hop_limit },
					port, &peer),
			 0);
	return peer;
}

/* Opens an exclusive peer to the address itself. */
static struct link_peer *open_own(struct link_addr *addr, uint16_t *port)
{
	struct link_peer *peer;

	assert_return_code(
		link_peer_open_exclusive(addr, &(struct link_dst){ .gid = link_addr_gid(addr) }, 0,
					 port, &peer),
		0);
	return peer;
}

/* Equal peers are one object; another traffic class or source port is another object. */
static void test_peers_are_shared(void **state)
{
	struct fixture *fixture = *state;
	uint16_t port = 0xc100, other = 0xc200;
	struct link_peer *a = open_peer(fixture->addr, 0, 64, &port);
	struct link_peer *b = open_peer(fixture->addr, 0, 64, &port);
	struct link_peer *c = open_peer(fixture->addr, 8, 64, &port);
	struct link_peer *d = open_peer(fixture->addr, 0, 64, &other);
	struct link_peer *e;

	assert_ptr_equal(a, b);
	assert_ptr_not_equal(a, c);
	assert_ptr_not_equal(a, d);
	assert_int_equal(port, 0xc100);
	assert_int_equal(other, 0xc200);
	/* An IPv4 address cannot send to an IPv6 address, or the reverse. */
	assert_int_equal(
		link_peer_open(fixture->addr, &(struct link_dst){ .gid = loopback6 }, &port, &e),
		-EAFNOSUPPORT);
	assert_int_equal(
		link_peer_open(fixture->addr6, &(struct link_dst){ .gid = loopback4 }, &port, &e),
		-EAFNOSUPPORT);
	link_peer_close(a);
	send_to_qpn(fixture->addr, loopback4, 0, 0);
	link_peer_close(b);
	link_peer_close(c);
	link_peer_close(d);
}

/* A source port that another program uses is skipped, and the receive port is never used. */
static void test_port_that_cannot_be_had(void **state)
{
	struct fixture *fixture = *state;
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_port = htons(0xffff),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint16_t taken = 0xffff, again = 0xffff, receive = 4791, none = 0;
	struct link_peer *peers[4];

	assert_return_code(bind(fd, (struct sockaddr *)&name, sizeof(name)), errno);
	peers[0] = open_peer(fixture->addr, 0, 64, &taken);
	assert_int_equal(taken, 0xc000);
	peers[1] = open_peer(fixture->addr, 0, 64, &again);
	assert_int_equal(again, 0xc000);
	assert_ptr_equal(peers[0], peers[1]);
	peers[2] = open_peer(fixture->addr, 0, 64, &receive);
	assert_true(receive >= 0xc000);
	peers[3] = open_peer(fixture->addr, 0, 64, &none);
	assert_true(none >= 0xc000);
	close(fd);
	for (int i = 0; i < 4; i++)
		link_peer_close(peers[i]);
}

/* Two processes of one user may send from the same port. */
static void test_port_of_other_process(void **state)
{
	struct fixture *fixture = *state;
	uint16_t port = 0xc300;
	struct link_peer *peer = open_peer(fixture->addr, 0, 64, &port);
	pid_t child = fork();

	if (child == 0) {
		struct link *link;
		struct link_addr *addr;

		link_abandon(fixture->link);
		if (open_loopback(&link, &addr))
			_exit(1);
		if (link_peer_open(addr, &(struct link_dst){ .gid = loopback4 }, &port, &peer) ||
		    port != 0xc300)
			_exit(2);
		_exit(0);
	}
	await_child(child, fixture->link);
	link_peer_close(peer);
}

/* Receives a datagram and stores its hop limit and traffic class; -1 if not reported. */
static void receive_class(struct link_addr *addr, bool ipv4, int *hop_limit, int *traffic_class)
{
	struct pollfd wait = { .fd = link_addr_fd(addr), .events = POLLIN };
	char bytes[64], control[256];
	struct iovec piece = { bytes, sizeof(bytes) };
	struct msghdr message = { .msg_iov = &piece,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *cmsg;
	int value;

	assert_int_equal(poll(&wait, 1, CHILD_TIMEOUT_MS), 1);
	assert_return_code(recvmsg(wait.fd, &message, 0), errno);
	*hop_limit = *traffic_class = -1;
	for (cmsg = CMSG_FIRSTHDR(&message); cmsg; cmsg = CMSG_NXTHDR(&message, cmsg)) {
		memcpy(&value, CMSG_DATA(cmsg), cmsg->cmsg_type == IP_TOS ? 1 : sizeof(value));
		if (cmsg->cmsg_level != (ipv4 ? IPPROTO_IP : IPPROTO_IPV6))
			continue;
		if (cmsg->cmsg_type == (ipv4 ? IP_TTL : IPV6_HOPLIMIT))
			*hop_limit = value;
		else if (cmsg->cmsg_type == (ipv4 ? IP_TOS : IPV6_TCLASS))
			*traffic_class = ipv4 ? value & 0xff : value;
	}
}

static void check_classes(struct fixture *fixture, struct link_addr *addr, uint16_t first_port)
{
	static const struct {
		uint8_t asked, hop_limit, traffic_class;
	} classes[] = {
		{ 64, 64, 0 }, { 1, 64, 0 }, { 0, 64, 32 }, { 255, 255, 106 }, { 65, 65, 2 }
	};
	bool ipv4 = addr == fixture->addr;
	uint32_t qpn = (link_slot(fixture->link) << LINK_SLOT_SHIFT | 100);
	int on = 1, hop_limit, traffic_class, fd = link_addr_fd(addr);
	unsigned int i;

	setsockopt(fd, ipv4 ? IPPROTO_IP : IPPROTO_IPV6, ipv4 ? IP_RECVTTL : IPV6_RECVHOPLIMIT, &on,
		   sizeof(on));
	setsockopt(fd, ipv4 ? IPPROTO_IP : IPPROTO_IPV6, ipv4 ? IP_RECVTOS : IPV6_RECVTCLASS, &on,
		   sizeof(on));
	for (i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		uint16_t port = (uint16_t)(first_port + i);
		struct link_peer *peer =
			open_peer(addr, classes[i].traffic_class, classes[i].asked, &port);
		uint8_t bytes[40];
		struct iovec piece = { bytes, sizeof(bytes) };

		put_datagram(bytes, sizeof(bytes), qpn, 1);
		assert_int_equal(link_send(peer, &piece, 1, 0), 0);
		receive_class(addr, ipv4, &hop_limit, &traffic_class);
		assert_int_equal(hop_limit, classes[i].hop_limit);
		assert_int_equal(traffic_class, classes[i].traffic_class);
		/* The same with the control message of a burst in addition */
		assert_int_equal(link_send(peer, &piece, 1, 20), 0);
		receive_class(addr, ipv4, &hop_limit, &traffic_class);
		assert_int_equal(hop_limit, classes[i].hop_limit);
		assert_int_equal(traffic_class, classes[i].traffic_class);
		link_peer_close(peer);
	}
}

/* Hop limits below 64 are raised to 64; others and the traffic class are used as requested. */
static void test_classes(void **state)
{
	struct fixture *fixture = *state;

	check_classes(fixture, fixture->addr, 0xc400);
	check_classes(fixture, fixture->addr6, 0xc400);
}

static unsigned int count_ports(const uint16_t *ports, unsigned int count)
{
	unsigned int i, n, distinct = 0;

	for (i = 0; i < count; i++) {
		for (n = 0; n < i && ports[n] != ports[i]; n++)
			;
		distinct += n == i;
	}
	return distinct;
}

/*
 * The number of sockets is limited: beyond the limit peers share source ports, but traffic classes
 * and hop limits still apply.
 */
static void test_source_ports_are_bounded(void **state)
{
	enum { COUNT = LINK_MAX_SOURCE_PORTS + 40 };
	struct fixture *fixture = *state;
	struct link_peer *peers[COUNT];
	uint16_t ports[COUNT];
	unsigned int i;

	for (i = 0; i < COUNT; i++) {
		ports[i] = (uint16_t)(0xd000 + i);
		peers[i] = open_peer(fixture->addr, 0, 64, &ports[i]);
	}
	assert_int_equal(count_ports(ports, COUNT), LINK_MAX_SOURCE_PORTS);
	check_classes(fixture, fixture->addr, 0xe000);
	for (i = 0; i < COUNT; i++)
		link_peer_close(peers[i]);
	/* All closed: there is room again. */
	ports[0] = 0xe123;
	peers[0] = open_peer(fixture->addr, 0, 64, &ports[0]);
	assert_int_equal(ports[0], 0xe123);
	link_peer_close(peers[0]);
}

/*
 * Each of the first LINK_MAX_CONNECTED peers has a connected socket; the others use a shared one
 * with the same source port and without a known identification.  The peers are distinct
 * nevertheless.
 */
static void test_connected_sockets_are_bounded(void **state)
{
	enum { COUNT = LINK_MAX_CONNECTED + 2 };
	struct fixture *fixture = *state;
	struct link_peer *peers[COUNT];
	uint16_t port = 0xc600;

	for (unsigned int i = 0; i < COUNT; i++) {
		peers[i] = open_own(fixture->addr, &port);
		assert_int_equal(port, 0xc600);
		assert_int_equal(link_peer_ip_id(peers[i]) != 0, i < LINK_MAX_CONNECTED);
	}
	assert_ptr_not_equal(peers[COUNT - 2], peers[COUNT - 1]);
	for (unsigned int i = 0; i < COUNT; i++)
		link_peer_close(peers[i]);
	/* All closed: there is room again. */
	peers[0] = open_own(fixture->addr, &port);
	assert_true(link_peer_ip_id(peers[0]) != 0);
	link_peer_close(peers[0]);
}

/* A connected socket over IPv6, which has no identification */
static void test_connected_ipv6(void **state)
{
	struct fixture *fixture = *state;
	uint16_t port = 0xc601;
	struct link_peer *peer = open_own(fixture->addr6, &port);
	uint8_t bytes[40] = { 0 };
	struct iovec piece = { bytes, sizeof(bytes) };

	for (int i = 0; i < 3; i++)
		assert_int_equal(link_send(peer, &piece, 1, 0), 0);
	assert_int_equal(port, 0xc601);
	link_peer_close(peer);
}

/* ---- packets on the wire ---- */

/* Makes the kernel split bursts into packets before they reach the interface, as for a real one. */
static bool switch_off_segmentation(int sock, const char *interface)
{
	enum { BLOCKS_MAX = 8, STRINGS_MAX = 32 * BLOCKS_MAX };
	struct ethtool_gstrings *strings =
		calloc(1, sizeof(*strings) + (size_t)STRINGS_MAX * ETH_GSTRING_LEN);
	struct ethtool_sfeatures *features =
		calloc(1, sizeof(*features) + BLOCKS_MAX * sizeof(features->features[0]));
	struct ifreq request = { .ifr_data = (char *)strings };
	bool found = false;
	unsigned int i;

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
	strings->cmd = ETHTOOL_GSTRINGS;
	strings->string_set = ETH_SS_FEATURES;
	if (ioctl(sock, SIOCETHTOOL, &request) == 0) {
		features->cmd = ETHTOOL_SFEATURES;
		features->size = (strings->len + 31) / 32;
		for (i = 0; i < strings->len; i++) {
			if (strcmp((char *)strings->data + i * ETH_GSTRING_LEN,
				   "tx-udp-segmentation"))
				continue;
			features->features[i / 32].valid |= 1u << i % 32;
			found = true;
		}
		request.ifr_data = (char *)features;
		found = found && ioctl(sock, SIOCETHTOOL, &request) >= 0;
	}
	free(strings);
	free(features);
	return found;
}

/* Captures the next outgoing UDP packet to port 4791 and stores its IPv4 header. */
static void capture(int sock, struct iphdr *header)
{
	uint8_t frame[ETH_HLEN + 64];
	struct sockaddr_ll from;
	struct pollfd wait = { .fd = sock, .events = POLLIN };

	for (;;) {
		socklen_t bytes = sizeof(from);

		assert_int_equal(poll(&wait, 1, CHILD_TIMEOUT_MS), 1);
		assert_return_code(recvfrom(sock, frame, sizeof(frame), MSG_TRUNC,
					    (struct sockaddr *)&from, &bytes),
				   errno);
		memcpy(header, frame + ETH_HLEN, sizeof(*header));
		if (from.sll_pkttype == PACKET_OUTGOING && header->protocol == IPPROTO_UDP &&
		    frame[ETH_HLEN + 22] == 4791 >> 8 && frame[ETH_HLEN + 23] == (4791 & 0xff))
			return;
	}
}

static void check_identifications(struct link_peer *peer, int sock, unsigned int count)
{
	static uint8_t bytes[40 * LINK_MAX_SEGMENTS];
	struct iovec piece = { bytes, 40 * count };
	struct iphdr header;
	uint16_t first = link_peer_ip_id(peer);
	unsigned int i;

	assert_int_equal(link_send(peer, &piece, 1, 40), 0);
	for (i = 0; i < count; i++) {
		capture(sock, &header);
		assert_int_equal(ntohs(header.id), (uint16_t)(first + i));
		assert_int_equal(ntohs(header.frag_off), IP_DF);
		assert_int_equal(ntohs(header.tot_len), 20 + 8 + 40);
	}
}

/* A single datagram is not split, whatever the segment size of earlier bursts. */
static void check_single(struct link_peer *peer, int sock, unsigned int length)
{
	uint8_t bytes[128] = { 0 };
	struct iovec piece = { bytes, length };
	uint16_t first = link_peer_ip_id(peer);
	struct iphdr header;

	assert_int_equal(link_send(peer, &piece, 1, 0), 0);
	capture(sock, &header);
	assert_int_equal(ntohs(header.id), first);
	assert_int_equal(ntohs(header.tot_len), 20 + 8 + length);
}

/*
 * The ICRC covers the IPv4 identification: it is 0 for a single datagram and counts from 0 in a
 * burst, for every traffic class, and for the first and later calls.  On a connected socket it
 * continues from call to call.
 */
static void test_identifications_on_the_wire(void **state)
{
	struct fixture *fixture = *state;
	uint16_t port = 0xc500, other = 0xc501, third = 0xc502;
	struct link_peer *plain = open_peer(fixture->addr, 0, 64, &port);
	struct link_peer *classed = open_peer(fixture->addr, 106, 255, &other);
	struct link_peer *own = open_own(fixture->addr, &third);
	int sock = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
	unsigned int round;

	if (sock < 0 || !in_new_netns() || !switch_off_segmentation(sock, "lo")) {
		fprintf(stderr, "SKIPPED: no packet socket in a network namespace of our own\n");
		link_peer_close(plain);
		link_peer_close(classed);
		link_peer_close(own);
		skip();
	}
	for (round = 0; round < 3; round++) {
		check_identifications(plain, sock, 1);
		check_identifications(plain, sock, 3);
		check_identifications(classed, sock, 1);
		check_identifications(classed, sock, link_max_segments(fixture->link));
		check_identifications(own, sock, 1);
		check_identifications(own, sock, 3);
		check_identifications(own, sock, 1);
		/* The socket's own UDP_SEGMENT is 40 by now, if the last burst was split. */
		check_single(own, sock, 80);
		check_identifications(own, sock, 3);
		check_identifications(own, sock, 3);
		check_single(own, sock, 80);
		check_single(own, sock, 80);
		check_identifications(own, sock, 2);
	}
	assert_int_equal(link_peer_ip_id(plain), 0);
	assert_true(link_peer_ip_id(own) >= 256 + 9);
	close(sock);
	link_peer_close(own);
	link_peer_close(plain);
	link_peer_close(classed);
}

enum { OLD_MS = 60000 };

/* The MTU of the route, for both families; loopback carries the largest packet. */
static void test_path_mtu(void **state)
{
	struct fixture *fixture = *state;
	struct link_addr *addrs[] = { fixture->addr, fixture->addr6 };
	struct link_peer *peers[2];
	uint32_t mtus[2];

	for (unsigned int i = 0; i < 2; i++) {
		uint16_t port = 0xc300;
		struct link_peer *peer = peers[i] = open_peer(addrs[i], 0, 64, &port);
		struct ifreq request = { .ifr_name = "lo" };
		int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

		assert_return_code(fd, errno);
		assert_return_code(ioctl(fd, SIOCGIFMTU, &request), errno);
		close(fd);
		/* The kernel may limit the MTU to UINT16_MAX, the largest IPv4 packet. */
		mtus[i] = link_peer_mtu(peer, 0);
		assert_true(mtus[i] == (uint32_t)request.ifr_mtu || mtus[i] == UINT16_MAX);
	}
	/* A cached MTU is that of the same path: IPv6 carries a byte more through loopback. */
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(link_peer_mtu(peers[i / 2], OLD_MS), mtus[i / 2]);
	for (unsigned int i = 0; i < 2; i++)
		link_peer_close(peers[i]);
}

#define WITH_BOTH(test) cmocka_unit_test_setup_teardown(test, open_both, close_both)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_BOTH(test_peers_are_shared),
		WITH_BOTH(test_port_that_cannot_be_had),
		WITH_BOTH(test_port_of_other_process),
		WITH_BOTH(test_classes),
		WITH_BOTH(test_source_ports_are_bounded),
		WITH_BOTH(test_connected_sockets_are_bounded),
		WITH_BOTH(test_connected_ipv6),
		WITH_BOTH(test_identifications_on_the_wire),
		WITH_BOTH(test_path_mtu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
