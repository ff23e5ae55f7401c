/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Long READ responses leave at a pace, whole and in order, and hold up nothing for ever. */
#include "peer.h"

#include <string.h>

#define LONG_RKEY 0x8008
#define LONG_BYTES (1u << 20)
#define LONG_MTU 4096
#define LONG_PACKETS (LONG_BYTES / LONG_MTU)
/* More than any pace of ours takes for LONG_BYTES. */
#define LONG_TIME (100 * MS)

static struct peer *peer_with_long_region(void)
{
	struct peer *peer = peer_rts((struct peer_config){ .mtu = LONG_MTU });
	struct peer_region *region =
		peer_region_add(peer, LONG_RKEY, 0, LONG_BYTES, ENG_REMOTE_READ);

	peer_fill(region->bytes, LONG_BYTES, 0);
	return peer;
}

static void ask(struct peer *peer, uint32_t psn, uint32_t packets)
{
	struct wire_packet read = peer_request(peer, WIRE_READ_REQUEST, psn, 0);

	read.rkey = LONG_RKEY;
	read.va = 0;
	read.dma_length = packets * LONG_MTU;
	peer_give(peer, &read);
}

static void expect_long_answer(struct peer *peer, uint32_t psn)
{
	for (uint32_t i = 0; i < LONG_PACKETS; i++) {
		const struct wire_packet *packet =
			expect_packet(peer,
				      i == 0		      ? WIRE_READ_RESPONSE_FIRST
				      : i == LONG_PACKETS - 1 ? WIRE_READ_RESPONSE_LAST
							      : WIRE_READ_RESPONSE_MIDDLE,
				      psn + i);

		assert_int_equal(packet->payload_length, LONG_MTU);
		expect_pattern(packet->payload, LONG_MTU, (uint64_t)i * LONG_MTU);
	}
}

/* A long READ is answered whole and in order, though not at once. */
static void test_long_read_is_whole(void **state)
{
	struct peer *peer = peer_with_long_region();
	uint64_t start = peer->now;

	(void)state;
	/* rule S12 test, rule S2 test */
	ask(peer, PEER_RQ_PSN, LONG_PACKETS);
	expect_long_answer(peer, PEER_RQ_PSN);
	assert_true(peer->now > start && peer->now - start < LONG_TIME);
	expect_silence(peer);
	assert_true(eng_deadline(peer->qp) == ENG_NEVER);
	assert_int_equal(eng_owed(peer->qp), ENG_OWED_NOTHING);
}

/* While the pace holds it up the QP says so, and when to come again. */
static void test_pace_is_a_reason_and_a_deadline(void **state)
{
	struct peer *peer = peer_with_long_region();
	struct eng_run run = peer_empty_run(peer, PEER_RUN_PACKETS);
	uint32_t packets = 0;
	enum eng_tx why;

	(void)state;
	/* rule S12 test */
	ask(peer, PEER_RQ_PSN, LONG_PACKETS);
	while ((why = peer_transmit(peer, &run, ENG_RESPONSES)) == ENG_TX_RUN)
		packets += run.packets;
	assert_int_equal(why, ENG_TX_PACING);
	assert_uint_in_range(packets, 16, LONG_PACKETS - 1);
	assert_true(eng_deadline(peer->qp) > peer->now);
	assert_true(eng_deadline(peer->qp) < peer->now + LONG_TIME);
}

/* Short READs behind a long one may share its last run, but have no pace of their own. */
static void test_pace_counts_across_reads(void **state)
{
	enum { SHORT_READS = 15, BURST = 368640, LONG_ENOUGH = 88 };
	struct peer *peer =
		peer_rts((struct peer_config){ .mtu = LONG_MTU, .max_dest_rd_atomic = 16 });
	uint64_t start = peer->now;
	uint32_t at_once = 0;

	(void)state;
	/* rule S12 test */
	peer_region_add(peer, LONG_RKEY, 0, LONG_BYTES, ENG_REMOTE_READ);
	ask(peer, PEER_RQ_PSN, LONG_ENOUGH);
	for (uint32_t i = 0; i < SHORT_READS; i++)
		ask(peer, PEER_RQ_PSN + LONG_ENOUGH + i, 1);
	peer_pull(peer);
	assert_int_equal(peer->sent_count, LONG_ENOUGH + SHORT_READS);
	for (uint32_t i = 0; i < peer->sent_count; i++) {
		assert_int_equal(peer->sent[i].packet.psn, PEER_RQ_PSN + i);
		if (peer->sent[i].time == start)
			at_once += LONG_MTU;
	}
	assert_uint_in_range(at_once, LONG_ENOUGH * LONG_MTU, BURST);
	assert_true(peer->now > start);
	assert_true(eng_deadline(peer->qp) == ENG_NEVER);
}

/* Our own requests go on meanwhile. */
static void test_requests_are_not_paced(void **state)
{
	struct peer *peer = peer_with_long_region();
	unsigned int writes = 0;

	(void)state;
	/* rule C14 test */
	ask(peer, PEER_RQ_PSN, LONG_PACKETS);
	peer_post(peer, ENG_WRITE, 8, 0);
	peer_pull_sides(peer, ENG_REQUESTS);
	for (unsigned int i = 0; i < peer->sent_count; i++)
		writes += peer->sent[i].packet.opcode == WIRE_WRITE_ONLY;
	assert_int_equal(writes, 1);
}

/* A fault behind a long READ: first the answer, at its pace, then the NAK. */
static void test_nak_behind_a_long_read(void **state)
{
	struct peer *peer = peer_with_long_region();
	struct wire_packet write =
		peer_request(peer, WIRE_WRITE_ONLY, PEER_RQ_PSN + LONG_PACKETS, 8);

	(void)state;
	/* rule S11 test */
	ask(peer, PEER_RQ_PSN, LONG_PACKETS);
	write.rkey = 0xbad;
	peer_give(peer, &write);
	assert_int_equal(eng_qp_state(peer->qp), ENG_ERR);
	expect_long_answer(peer, PEER_RQ_PSN);
	expect_ack(peer, PEER_RQ_PSN + LONG_PACKETS, NAK_ACCESS, 1);
	expect_silence(peer);
	assert_true(eng_deadline(peer->qp) == ENG_NEVER);
}

/* What comes behind it is answered behind it. */
static void test_order_behind_a_long_read(void **state)
{
	struct peer *peer = peer_with_long_region();

	(void)state;
	/* rule S7 test */
	ask(peer, PEER_RQ_PSN, LONG_PACKETS);
	peer_give_atomic(peer, WIRE_FETCH_ADD, PEER_RQ_PSN + LONG_PACKETS, 0, 0, 1);
	peer_give_request(peer, WIRE_WRITE_ONLY, PEER_RQ_PSN + LONG_PACKETS + 1, 8);
	expect_long_answer(peer, PEER_RQ_PSN);
	expect_packet(peer, WIRE_ATOMIC_ACKNOWLEDGE, PEER_RQ_PSN + LONG_PACKETS);
	expect_ack(peer, PEER_RQ_PSN + LONG_PACKETS + 1, ACK_CODE(0), 3);
	expect_silence(peer);
}

/* Leaving RTS ends it: nothing more to wait for. */
static void test_error_ends_the_pace(void **state)
{
	struct peer *peer = peer_with_long_region();

	(void)state;
	/* rule S13 test */
	ask(peer, PEER_RQ_PSN, LONG_PACKETS);
	peer_set_state(peer, ENG_ERR);
	expect_silence(peer);
	assert_true(eng_deadline(peer->qp) == ENG_NEVER);
	assert_int_equal(eng_owed(peer->qp), ENG_OWED_NOTHING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PEER_TEST(test_long_read_is_whole),
		PEER_TEST(test_pace_is_a_reason_and_a_deadline),
		PEER_TEST(test_pace_counts_across_reads),
		PEER_TEST(test_requests_are_not_paced),
		PEER_TEST(test_nak_behind_a_long_read),
		PEER_TEST(test_order_behind_a_long_read),
		PEER_TEST(test_error_ends_the_pace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
