/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Simulates foreign stacks and a lossy network in virtual time, and tests which identifications are
 * accepted from which kind of peer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "foreign_stack.h"
#include "progress/rx/ip_id.h"

enum {
	PACKETS = 200000, /* of each stack */
	LATE = 8,	  /* maximum number of delayed packets */
	IDENTIFICATIONS = 65536,
};

struct late {
	unsigned int flow;
	bool request;
	uint16_t id;
};

struct network {
	struct stack stack;
	struct ip_id_history peer[STACK_FLOWS];
	struct late late[LATE];
	unsigned int late_count;
	unsigned int refused, arrived;
};

static void arrive(struct network *network, unsigned int flow, bool request, uint16_t id)
{
	network->arrived++;
	if (!ip_id_check(&network->peer[flow], request, id))
		network->refused++;
}

/* A packet in 20 is lost, one in 20 comes twice and one in 20 comes late. */
static void carry(struct network *network, unsigned int flow, bool request, uint16_t id)
{
	unsigned int what = stack_random(&network->stack, 20);
	unsigned int place = stack_random(&network->stack, LATE);
	struct late *late = &network->late[place];

	if (what == 0)
		return;
	if (what == 1) {
		if (network->late_count == LATE)
			arrive(network, late->flow, late->request, late->id);
		else
			late = &network->late[network->late_count++];
		*late = (struct late){ flow, request, id };
		return;
	}
	arrive(network, flow, request, id);
	if (what == 2)
		arrive(network, flow, request, id);
}

static void pause_now_and_then(struct stack *stack)
{
	static const uint64_t pauses[] = { STACK_SECOND_NS / 1000, STACK_SECOND_NS,
					   5 * STACK_SECOND_NS, 60 * STACK_SECOND_NS };

	stack_pause(stack, stack_random(stack, 50000));
	if (stack_random(stack, 100) == 0)
		stack_pause(stack, pauses[stack_random(stack, 4)]);
}

/* Sends single packets, bursts and, rarely, messages of thousands of packets, on random flows. */
static void talk(struct network *network, enum stack_kind kind)
{
	memset(network, 0, sizeof(*network));
	stack_init(&network->stack, kind, 1 + kind);
	while (network->arrived < PACKETS) {
		unsigned int flow = stack_random(&network->stack, STACK_FLOWS);
		unsigned int length = 1, kind_of_message = stack_random(&network->stack, 200);
		bool request = stack_random(&network->stack, 2);

		if (kind_of_message == 0)
			length = 3000;
		else if (kind_of_message < 40)
			length = 1 + stack_random(&network->stack, 64);
		pause_now_and_then(&network->stack);
		stack_begin(&network->stack, flow);
		while (length--)
			carry(network, flow, request, stack_next(&network->stack, flow));
	}
}

/* rule S14 test: with a correct packet every identification is accepted, whatever the stack. */
static void test_no_right_packet_is_refused(void **state)
{
	static struct network network;
	bool failed = false;

	(void)state;
	for (enum stack_kind kind = 0; kind < STACK_KINDS; kind++) {
		talk(&network, kind);
		if (network.refused) {
			print_error("%s: %u of %u refused\n", stack_name(kind), network.refused,
				    network.arrived);
			failed = true;
		}
	}
	assert_false(failed);
}

/* Number of identifications with which a damaged packet would be accepted. */
static unsigned int count_believed(const struct ip_id_history *peer, bool request)
{
	unsigned int believed = 0;

	for (unsigned int id = 0; id < IDENTIFICATIONS; id++) {
		struct ip_id_history copy = *peer;

		believed += ip_id_check(&copy, request, (uint16_t)id);
	}
	return believed;
}

/*
 * rule S14 test: strength of the check once the kind of the peer's stack is known.  If it numbers
 * the packets of a burst, at most two in 512 identifications are accepted; otherwise any is.
 */
static void test_strength(void **state)
{
	static struct network network;

	(void)state;
	for (enum stack_kind kind = 0; kind < STACK_KINDS; kind++) {
		bool places = kind == STACK_ZERO || kind == STACK_BURSTS;

		/* Known only after a long message, which a flow may not have had. */
		if (kind == STACK_MESSAGES)
			continue;
		talk(&network, kind);
		for (unsigned int flow = 0; flow < STACK_FLOWS; flow++) {
			unsigned int believed = count_believed(&network.peer[flow], true);

			if (places)
				assert_true(believed <= 2 * IP_ID_INDEX_MAX);
			else
				assert_int_equal(believed, IDENTIFICATIONS);
		}
	}
}

static void show_places(struct ip_id_history *peer)
{
	for (int i = 0; i < IP_ID_ZEROS_NEEDED; i++) {
		assert_int_equal(count_believed(peer, true), IDENTIFICATIONS);
		assert_true(ip_id_check(peer, true, 0));
	}
}

/* The identifications of requests do not show how the peer numbers its responses. */
static void test_sides(void **state)
{
	struct ip_id_history peer = { 0 };

	(void)state;
	show_places(&peer);
	assert_false(ip_id_check(&peer, true, 40000));
	assert_true(ip_id_check(&peer, false, 40000));
}

/*
 * If a peer changes its numbering, packets are accepted from the second unexpected one on, even
 * with expected ones in between.
 */
static void test_change(void **state)
{
	struct ip_id_history peer = { 0 };

	(void)state;
	show_places(&peer);
	assert_false(ip_id_check(&peer, true, 20000));
	for (int i = 0; i < 1000; i++)
		assert_true(ip_id_check(&peer, true, 0));
	assert_true(ip_id_check(&peer, true, 50000));
	assert_int_equal(count_believed(&peer, true), IDENTIFICATIONS);
}

/*
 * On a link that damages packets, unexpected identifications are attributed to damage: of 40 x
 * 65536 damaged packets 40 have an identification that makes their ICRC right, as one in 65536 has
 * by chance, and all 40 are refused.
 */
static void test_damage_does_not_add_up(void **state)
{
	struct ip_id_history peer = { 0 };
	unsigned int odd = 0;

	(void)state;
	show_places(&peer);
	for (int i = 1; i <= 40 * IDENTIFICATIONS; i++) {
		if (i % IDENTIFICATIONS)
			ip_id_bad_icrc(&peer);
		else
			odd += !ip_id_check(&peer, true, (uint16_t)(1000 + i / 16));
		if (i % 100 == 0)
			assert_true(ip_id_check(&peer, true, 5));
	}
	assert_int_equal(odd, 40);
}

/*
 * Expected first identification of a batch: 0 for stacks that number packets of a burst, one more
 * than the last for those that count calls.
 */
static void test_expected(void **state)
{
	struct ip_id_history peer = { 0 };

	(void)state;
	assert_int_equal(ip_id_expected(&peer), 0);
	ip_id_batch_start(&peer, 17);
	assert_int_equal(ip_id_expected(&peer), 0);
	ip_id_batch_start(&peer, 17000);
	assert_int_equal(ip_id_expected(&peer), 17001);
	ip_id_batch_start(&peer, 65535);
	assert_int_equal(ip_id_expected(&peer), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_right_packet_is_refused),
		cmocka_unit_test(test_strength),
		cmocka_unit_test(test_sides),
		cmocka_unit_test(test_change),
		cmocka_unit_test(test_damage_does_not_add_up),
		cmocka_unit_test(test_expected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
