/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The receive demultiplexer and foreign stacks: whatever IPv4 identifications a peer uses, no
 * packet with a right ICRC is refused, on many RC or UC queue pairs at once, after any pause.
 */
#include "progress_end.h"

#include <stdio.h>
#include <string.h>

#include "demux_peer.h"
#include "foreign_stack.h"
#include "link_child.h"
#include "wire/packet.h"

enum {
	PAIRS = 16,
	MESSAGES = 150, /* of each stack */
	BURST = 3,
	MERGED = 50,
	FIRST_PSN = 0xfffff0,
};

struct fixture {
	struct progress *progress;
	struct progress_end ends[PAIRS];
	uint32_t psn[PAIRS];
	uint8_t service;
	struct demux_peer peer;
};

static struct fixture fixture;
static uint8_t sink[64];

static void open_pairs(enum eng_qp_type type)
{
	memset(&fixture, 0, sizeof(fixture));
	fixture.progress = get_progress();
	fixture.service = type == ENG_UC ? WIRE_UC : WIRE_RC;
	for (int i = 0; i < PAIRS; i++) {
		end_open_as(&fixture.ends[i], fixture.progress, type);
		end_connect(&fixture.ends[i], 0x100000u + (unsigned int)i);
		fixture.psn[i] = FIRST_PSN;
	}
	demux_peer_open(&fixture.peer, "127.0.0.1");
}

static void close_pairs(void)
{
	demux_peer_close(&fixture.peer);
	for (int i = 0; i < PAIRS; i++)
		end_close(&fixture.ends[i]);
	progress_put(fixture.progress);
}

/* Send the queue pair's next message with this identification. */
static void send_next(unsigned int pair, uint16_t identification)
{
	uint8_t bytes[DEMUX_PACKET_BYTES];

	demux_peer_make(&fixture.peer, bytes, fixture.service, fixture.ends[pair].qp.qpn,
			fixture.psn[pair], identification);
	demux_peer_send(&fixture.peer, bytes, sizeof(bytes), 0);
}

/*
 * Posts a receive and sends the queue pair's next message.  The message must arrive: an RC queue
 * pair that misses one completes no later ones.
 */
static void deliver(unsigned int pair, uint16_t identification)
{
	assert_true(end_receive(&fixture.ends[pair], sink, sizeof(sink)));
	send_next(pair, identification);
	fixture.psn[pair]++;
}

static uint64_t refused(void)
{
	return progress_count(fixture.progress, PROGRESS_COUNT_ICRC_ERRORS);
}

static unsigned int received(void)
{
	unsigned int count = 0;

	for (int i = 0; i < PAIRS; i++)
		count += fixture.ends[i].received;
	return count;
}

/* Poll until all packets sent so far are either received or refused. */
static void settle(unsigned int sent)
{
	uint64_t until = progress_now() + UINT64_C(10000000000);

	while (received() + refused() < sent && progress_now() < until)
		progress_poll(fixture.progress);
}

/*
 * Sends MESSAGES messages as a stack of this kind, until one is refused.  Returns the number
 * received.
 */
static unsigned int speak(enum stack_kind kind)
{
	static const uint64_t pauses[] = { 0, 20000, 5 * STACK_SECOND_NS, 60 * STACK_SECOND_NS };
	unsigned int sent = 0;
	struct stack stack;

	stack_init(&stack, kind, kind + 1);
	while (sent < MESSAGES && !refused()) {
		unsigned int pair = stack_random(&stack, PAIRS);

		stack_pause(&stack, pauses[stack_random(&stack, 4)]);
		stack_begin(&stack, pair);
		for (int i = 0; i < BURST && !refused(); i++) {
			deliver(pair, stack_next(&stack, pair));
			settle(++sent);
		}
	}
	return received();
}

/* rule S14 test: no correct packet is refused, whatever the peer's stack. */
static void test_stacks(void **state)
{
	bool failed = false;

	(void)state;
	for (enum stack_kind kind = 0; kind < STACK_KINDS; kind++) {
		unsigned int rc, uc;

		open_pairs(ENG_RC);
		rc = speak(kind);
		close_pairs();
		open_pairs(ENG_UC);
		uc = speak(kind);
		close_pairs();
		if (rc != MESSAGES || uc != MESSAGES) {
			print_error("%s: refused after %u by RC, after %u by UC\n",
				    stack_name(kind), rc, uc);
			failed = true;
		}
	}
	assert_false(failed);
}

/*
 * rule S14 test: packets that the kernel merges into one batch, which it does with little or no
 * regard to their identifications.
 */
static void test_merged(void **state)
{
	uint8_t bytes[MERGED][DEMUX_PACKET_BYTES];
	struct stack stack;

	(void)state;
	for (enum stack_kind kind = 0; kind < STACK_KINDS; kind++) {
		open_pairs(ENG_RC);
		stack_init(&stack, kind, 1);
		for (unsigned int i = 0; i < MERGED; i++) {
			unsigned int pair = i / 2 % PAIRS;

			assert_true(end_receive(&fixture.ends[pair], sink, sizeof(sink)));
			demux_peer_make(&fixture.peer, bytes[i], fixture.service,
					fixture.ends[pair].qp.qpn, fixture.psn[pair]++,
					stack_next(&stack, pair));
		}
		demux_peer_send(&fixture.peer, bytes[0], sizeof(bytes), DEMUX_PACKET_BYTES);
		settle(MERGED);
		if (refused() || received() != MERGED)
			fail_msg("%s: %u of %u received", stack_name(kind), received(), MERGED);
		close_pairs();
	}
}

/*
 * Once a peer has shown that it uses 0, a packet with another identification is refused as damaged.
 */
static void test_damage(void **state)
{
	(void)state;
	open_pairs(ENG_UC);
	for (unsigned int i = 0; i < 20; i++)
		deliver(0, 0);
	settle(20);
	assert_int_equal(fixture.ends[0].received, 20);
	assert_int_equal(refused(), 0);
	send_next(0, 40000);
	settle(21);
	assert_int_equal(refused(), 1);
	assert_int_equal(fixture.ends[0].received, 20);
	/* The index of the last packet of a burst is still accepted. */
	deliver(0, 0);
	deliver(0, 127);
	settle(23);
	assert_int_equal(refused(), 1);
	assert_int_equal(fixture.ends[0].received, 22);
	/* The peer's kind is known for this connection only. */
	deliver(1, 40000);
	settle(24);
	assert_int_equal(fixture.ends[1].received, 1);
	close_pairs();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_merged),
		cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests(tests, enter_new_netns, NULL);
}
