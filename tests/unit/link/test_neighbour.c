/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Resolution of the next hop before a queue pair needs it, in a network namespace of the test's
 * own.  A thread acts as the neighbour, which replies to the first ARP request, only to the second,
 * or to none.
 */
#include "link_child.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/netlink/neighbour.h"
#include "veth.h"

enum { NEVER = 1000, TRIES = 5 };

static const uint8_t own[16] = { [10] = 0xff, [11] = 0xff, [12] = 192, 0, 2, 1 };
static const uint8_t other[16] = { [10] = 0xff, [11] = 0xff, [12] = 192, 0, 2, 2 };
static const uint8_t others_mac[ETH_ALEN] = { 2, 0, 0, 0, 0, 0xb };

/* RFC 826, of Ethernet and IPv4. */
struct arp {
	uint16_t hardware, protocol;
	uint8_t hardware_bytes, protocol_bytes;
	uint16_t operation;
	uint8_t sender_mac[ETH_ALEN], sender[4], target_mac[ETH_ALEN], target[4];
} __attribute__((packed));

static struct {
	int fd;
	pthread_t thread;
	unsigned int answers_from; /* first request to reply to, counted from 1 */
	atomic_uint questions;
	atomic_bool over;
} neighbour;

static void answer(const struct arp *question, const struct sockaddr_ll *asker)
{
	struct arp reply = *question;

	reply.operation = htons(ARPOP_REPLY);
	memcpy(reply.sender_mac, others_mac, ETH_ALEN);
	memcpy(reply.sender, other + 12, 4);
	memcpy(reply.target_mac, question->sender_mac, ETH_ALEN);
	memcpy(reply.target, question->sender, 4);
	(void)!sendto(neighbour.fd, &reply, sizeof(reply), 0, (const struct sockaddr *)asker,
		      sizeof(*asker));
}

static void *be_neighbour(void *arg)
{
	struct sockaddr_ll asker;
	struct arp question;

	while (!atomic_load(&neighbour.over)) {
		socklen_t bytes = sizeof(asker);
		ssize_t got = recvfrom(neighbour.fd, &question, sizeof(question), 0,
				       (struct sockaddr *)&asker, &bytes);

		if (got < (ssize_t)sizeof(question) || asker.sll_pkttype == PACKET_OUTGOING ||
		    question.operation != htons(ARPOP_REQUEST) ||
		    memcmp(question.target, other + 12, 4))
			continue;
		if (atomic_fetch_add(&neighbour.questions, 1) + 1 >= neighbour.answers_from)
			answer(&question, &asker);
	}
	return arg;
}

static void begin(unsigned int answers_from)
{
	const struct timeval look_again = { .tv_usec = 20000 };
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ARP) };

	create_veth();
	ip("address add 192.0.2.1/24 dev urA");
	ip("link set urA up");
	ip("link set urB up");
	assert_true(carrier_comes_up("urA"));
	atomic_store(&neighbour.over, false);
	neighbour.answers_from = answers_from;
	neighbour.fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_ARP));
	assert_true(neighbour.fd >= 0);
	assert_int_equal(
		setsockopt(neighbour.fd, SOL_SOCKET, SO_RCVTIMEO, &look_again, sizeof(look_again)),
		0);
	at.sll_ifindex = (int)if_nametoindex("urB");
	assert_int_equal(bind(neighbour.fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(pthread_create(&neighbour.thread, NULL, be_neighbour, NULL), 0);
}

static void end(void)
{
	atomic_store(&neighbour.over, true);
	assert_int_equal(pthread_join(neighbour.thread, NULL), 0);
	close(neighbour.fd);
	ip("link delete urA");
	atomic_store(&neighbour.questions, 0);
}

/*
 * Returns true if the result equals found and takes at least this number of ms (0: less than 900
 * ms; after a second the kernel repeats its request).
 */
static bool meet(const uint8_t *there, bool found, int64_t least_ms)
{
	int64_t begin = now_ms(), took;
	bool result = neighbour_wait_resolved(own, there, 0);

	took = now_ms() - begin;
	return result == found && (least_ms ? took >= least_ms : took < 900);
}

static bool is_asked(unsigned int times)
{
	return atomic_load(&neighbour.questions) == times;
}

static bool answers_at_once(void)
{
	if (!meet(other, true, 0) || !is_asked(1))
		return false;
	/* The neighbour is known now. */
	return meet(other, true, 0) && is_asked(1);
}

static bool first_question_is_lost(void)
{
	return meet(other, true, 900) && is_asked(2);
}

/* A thousand queue pairs must not wait for an absent neighbour one after the other. */
static bool is_absent(void)
{
	/* 1500 ms, by a clock that counts whole milliseconds */
	return meet(other, false, 1499) && meet(other, false, 0);
}

static bool is_this_host(void)
{
	return meet(own, true, 0) && is_asked(0);
}

struct attempt {
	unsigned int answers_from;
	bool (*is_good)(void);
};

/* Either thread may not be scheduled for a while, but not in every attempt. */
static void try_some_times(void **state)
{
	const struct attempt *attempt = *state;
	bool good = false;

	for (int i = 0; i < TRIES && !good; i++) {
		begin(attempt->answers_from);
		good = attempt->is_good();
		end();
	}
	assert_true(good);
}

int main(void)
{
	struct attempt attempts[] = {
		{ 1, answers_at_once },
		{ 2, first_question_is_lost },
		{ NEVER, is_absent },
		{ NEVER, is_this_host },
	};
	const struct CMUnitTest tests[] = {
		{ "answers_at_once", try_some_times, enter_new_netns, NULL, &attempts[0] },
		{ "first_question_is_lost", try_some_times, enter_new_netns, NULL, &attempts[1] },
		{ "is_absent", try_some_times, enter_new_netns, NULL, &attempts[2] },
		{ "is_this_host", try_some_times, enter_new_netns, NULL, &attempts[3] },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
