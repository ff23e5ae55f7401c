/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Responses to long READs are paced, sent completely and in order, and do not block requests. */
#include "dut.h"

#include <string.h>

#define LONG_RKEY 0x8008
#define LONG_BYTES (1u << 20)
#define LONG_MTU 4096
#define LONG_PACKETS (LONG_BYTES / LONG_MTU)
/* Longer than the responses of LONG_BYTES take at any rate. */
#define LONG_TIME (100 * MS)

static struct dut *dut_with_long_region(void)
{
	struct dut *dut = dut_rts((struct dut_config){ .mtu = LONG_MTU });
	struct dut_region *region = dut_region_add(dut, LONG_RKEY, 0, LONG_BYTES, ENG_REMOTE_READ);

	dut_fill(region->bytes, LONG_BYTES, 0);
	return dut;
}

static void ask(struct dut *dut, uint32_t psn, uint32_t packets)
{
	struct wire_packet read = dut_request(dut, WIRE_READ_REQUEST, psn, 0);

	read.rkey = LONG_RKEY;
	read.va = 0;
	read.dma_length = packets * LONG_MTU;
	dut_give(dut, &read);
}

static void expect_long_answer(struct dut *dut, uint32_t psn)
{
	for (uint32_t i = 0; i < LONG_PACKETS; i++) {
		const struct wire_packet *packet =
			expect_packet(dut,
				      i == 0		      ? WIRE_READ_RESPONSE_FIRST
				      : i == LONG_PACKETS - 1 ? WIRE_READ_RESPONSE_LAST
							      : WIRE_READ_RESPONSE_MIDDLE,
				      psn + i);

		assert_int_equal(packet->payload_length, LONG_MTU);
		expect_pattern(packet->payload, LONG_MTU, (uint64_t)i * LONG_MTU);
	}
}

/* A long READ is answered completely and in order, although not at once. */
static void test_long_read_is_whole(void **state)
{
	struct dut *dut = dut_with_long_region();
	uint64_t start = dut->now;

	(void)state;
	/* rule S12 test, rule S2 test */
	ask(dut, DUT_RQ_PSN, LONG_PACKETS);
	expect_long_answer(dut, DUT_RQ_PSN);
	assert_true(dut->now > start && dut->now - start < LONG_TIME);
	expect_silence(dut);
	assert_true(eng_deadline(dut->qp) == ENG_NEVER);
	assert_int_equal(eng_resp_pending(dut->qp), ENG_RESP_NONE);
}

/* While READ responses wait for their pace, the QP returns ENG_TX_PACING and has a deadline. */
static void test_pace_is_a_reason_and_a_deadline(void **state)
{
	struct dut *dut = dut_with_long_region();
	struct eng_burst burst = dut_empty_burst(dut, DUT_BURST_PACKETS);
	uint32_t packets = 0;
	enum eng_tx why;

	(void)state;
	/* rule S12 test */
	ask(dut, DUT_RQ_PSN, LONG_PACKETS);
	while ((why = dut_transmit(dut, &burst, ENG_RESPONSES)) == ENG_TX_BURST)
		packets += burst.packets;
	assert_int_equal(why, ENG_TX_PACING);
	assert_uint_in_range(packets, 16, LONG_PACKETS - 1);
	assert_true(eng_deadline(dut->qp) > dut->now);
	assert_true(eng_deadline(dut->qp) < dut->now + LONG_TIME);
}

/* Short READs after a long one may share its last burst, but are paced together with it. */
static void test_pace_counts_across_reads(void **state)
{
	enum { SHORT_READS = 15, BURST = 368640, LONG_ENOUGH = 88 };
	struct dut *dut = dut_rts((struct dut_config){ .mtu = LONG_MTU, .max_dest_rd_atomic = 16 });
	uint64_t start = dut->now;
	uint32_t at_once = 0;

	(void)state;
	/* rule S12 test */
	dut_region_add(dut, LONG_RKEY, 0, LONG_BYTES, ENG_REMOTE_READ);
	ask(dut, DUT_RQ_PSN, LONG_ENOUGH);
	for (uint32_t i = 0; i < SHORT_READS; i++)
		ask(dut, DUT_RQ_PSN + LONG_ENOUGH + i, 1);
	dut_pull(dut);
	assert_int_equal(dut->sent_count, LONG_ENOUGH + SHORT_READS);
	for (uint32_t i = 0; i < dut->sent_count; i++) {
		assert_int_equal(dut->sent[i].packet.psn, DUT_RQ_PSN + i);
		if (dut->sent[i].time == start)
			at_once += LONG_MTU;
	}
	assert_uint_in_range(at_once, LONG_ENOUGH * LONG_MTU, BURST);
	assert_true(dut->now > start);
	assert_true(eng_deadline(dut->qp) == ENG_NEVER);
}

/* Requests are still sent while READ responses are paced. */
static void test_requests_are_not_paced(void **state)
{
	struct dut *dut = dut_with_long_region();
	unsigned int writes = 0;

	(void)state;
	/* rule C14 test */
	ask(dut, DUT_RQ_PSN, LONG_PACKETS);
	dut_post(dut, ENG_WRITE, 8, 0);
	dut_pull_sides(dut, ENG_REQUESTS);
	for (unsigned int i = 0; i < dut->sent_count; i++)
		writes += dut->sent[i].packet.opcode == WIRE_WRITE_ONLY;
	assert_int_equal(writes, 1);
}

/* An invalid request after a long READ: first the paced responses are sent, then the NAK. */
static void test_nak_behind_a_long_read(void **state)
{
	struct dut *dut = dut_with_long_region();
	struct wire_packet write = dut_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN + LONG_PACKETS, 8);

	(void)state;
	/* rule S11 test */
	ask(dut, DUT_RQ_PSN, LONG_PACKETS);
	write.rkey = 0xbad;
	dut_give(dut, &write);
	assert_int_equal(eng_qp_state(dut->qp), ENG_ERR);
	expect_long_answer(dut, DUT_RQ_PSN);
	expect_ack(dut, DUT_RQ_PSN + LONG_PACKETS, NAK_ACCESS, 1);
	expect_silence(dut);
	assert_true(eng_deadline(dut->qp) == ENG_NEVER);
}

/* Responses to later requests follow those of the READ. */
static void test_order_behind_a_long_read(void **state)
{
	struct dut *dut = dut_with_long_region();

	(void)state;
	/* rule S7 test */
	ask(dut, DUT_RQ_PSN, LONG_PACKETS);
	dut_give_atomic(dut, WIRE_FETCH_ADD, DUT_RQ_PSN + LONG_PACKETS, 0, 0, 1);
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN + LONG_PACKETS + 1, 8);
	expect_long_answer(dut, DUT_RQ_PSN);
	expect_packet(dut, WIRE_ATOMIC_ACKNOWLEDGE, DUT_RQ_PSN + LONG_PACKETS);
	expect_ack(dut, DUT_RQ_PSN + LONG_PACKETS + 1, ACK_CODE(0), 3);
	expect_silence(dut);
}

/* In ERR no paced responses are pending any more. */
static void test_error_ends_the_pace(void **state)
{
	struct dut *dut = dut_with_long_region();

	(void)state;
	/* rule S13 test */
	ask(dut, DUT_RQ_PSN, LONG_PACKETS);
	dut_set_state(dut, ENG_ERR);
	expect_silence(dut);
	assert_true(eng_deadline(dut->qp) == ENG_NEVER);
	assert_int_equal(eng_resp_pending(dut->qp), ENG_RESP_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DUT_TEST(test_long_read_is_whole),
		DUT_TEST(test_pace_is_a_reason_and_a_deadline),
		DUT_TEST(test_pace_counts_across_reads),
		DUT_TEST(test_requests_are_not_paced),
		DUT_TEST(test_nak_behind_a_long_read),
		DUT_TEST(test_order_behind_a_long_read),
		DUT_TEST(test_error_ends_the_pace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
