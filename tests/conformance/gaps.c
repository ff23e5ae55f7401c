/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* READ responses behind a missing one: placed as they come, and only what is missing asked for. */
#include "dut.h"

#include <string.h>

#define PACKETS 6
#define READ_BYTES (PACKETS * DUT_MTU - 100)

static const uint32_t first_psns[] = { DUT_SQ_PSN, 0xfffffd };
static uint8_t data[READ_BYTES];

/* The peer tells of credits, as a uroce does. */
static struct dut *reader(uint32_t sq_psn)
{
	struct dut *dut = dut_rts((struct dut_config){ .sq_psn = sq_psn });

	dut_ack(dut, sq_psn - 1, ACK_CODE(4), 0);
	memset(dut->local, 0, DUT_REGION_BYTES);
	dut_fill(data, READ_BYTES, 9000);
	return dut;
}

static uint32_t bytes_of(uint32_t i)
{
	return i == PACKETS - 1 ? READ_BYTES - i * DUT_MTU : DUT_MTU;
}

/* Packet i of the answer to the n-th READ. */
static void answer(struct dut *dut, uint32_t n, uint32_t i, uint8_t opcode)
{
	struct wire_packet packet = dut_packet(dut, opcode, dut->config.sq_psn + n * PACKETS + i);

	packet.syndrome = ACK_CODE(0);
	packet.payload = data + i * DUT_MTU;
	packet.payload_length = bytes_of(i);
	dut_give(dut, &packet);
}

static uint8_t usual(uint32_t i)
{
	if (i == 0)
		return WIRE_READ_RESPONSE_FIRST;
	return i == PACKETS - 1 ? WIRE_READ_RESPONSE_LAST : WIRE_READ_RESPONSE_MIDDLE;
}

/* The whole answer to the n-th READ, but for a set of its packets. */
static void answer_without(struct dut *dut, uint32_t n, uint32_t missing)
{
	for (uint32_t i = 0; i < PACKETS; i++)
		if (!(missing >> i & 1))
			answer(dut, n, i, usual(i));
}

static void expect_request(struct dut *dut, uint32_t n, uint32_t from, uint32_t to)
{
	uint32_t length = (to == PACKETS ? READ_BYTES : to * DUT_MTU) - from * DUT_MTU;
	uint32_t psn = (dut->config.sq_psn + n * PACKETS + from) & 0xffffff;
	const struct wire_packet *packet = expect_packet(dut, WIRE_READ_REQUEST, psn);

	assert_true(packet->va == DUT_THEIR_VA + from * DUT_MTU);
	assert_int_equal(packet->dma_length, length);
	assert_int_equal(packet->rkey, DUT_THEIR_RKEY);
	assert_true(packet->ack_request);
}

/*
 * A gap is asked for when the end of its READ has come, and alone; its answer is an Only or a Last
 * amid the READ.  rule S12 test
 */
static void test_gap_alone(void **state)
{
	(void)state;
	for (unsigned int row = 0; row < 2; row++) {
		struct dut *dut = reader(first_psns[row]);
		uint64_t id = dut_post(dut, ENG_READ, READ_BYTES, ENG_SIGNALED);

		expect_request(dut, 0, 0, PACKETS);
		for (uint32_t i = 0; i < PACKETS - 1; i++)
			if (i != 2)
				answer(dut, 0, i, usual(i));
		expect_silence(dut);
		answer(dut, 0, PACKETS - 1, usual(PACKETS - 1));
		expect_request(dut, 0, 2, 3);
		expect_silence(dut);
		expect_no_wc(dut);
		answer(dut, 0, 2, WIRE_READ_RESPONSE_ONLY);
		expect_wc(dut, id, ENG_SUCCESS);
		expect_pattern(dut->local, READ_BYTES, 9000);
		expect_silence(dut);
		assert_int_equal(eng_in_flight(dut->qp), 0);
		if (row == 0)
			dut_teardown(NULL);
	}
}

/* Of several gaps all from the first to the last: the responder remembers one range of a READ. */
static void test_gaps_are_one_range(void **state)
{
	struct dut *dut = reader(DUT_SQ_PSN);
	uint64_t id = dut_post(dut, ENG_READ, READ_BYTES, ENG_SIGNALED);

	(void)state;
	expect_request(dut, 0, 0, PACKETS);
	answer_without(dut, 0, 1 << 1 | 1 << 3);
	expect_request(dut, 0, 1, 4);
	answer(dut, 0, 1, WIRE_READ_RESPONSE_FIRST);
	answer(dut, 0, 2, WIRE_READ_RESPONSE_MIDDLE);
	expect_no_wc(dut);
	answer(dut, 0, 3, WIRE_READ_RESPONSE_LAST);
	expect_wc(dut, id, ENG_SUCCESS);
	expect_pattern(dut->local, READ_BYTES, 9000);
	expect_silence(dut);
}

/* READs complete in their order, and a WRITE between them with the answer behind it. */
static void test_order_stays(void **state)
{
	struct dut *dut = reader(DUT_SQ_PSN);
	uint64_t ids[3];

	(void)state;
	/* rule S8 test */
	for (unsigned int n = 0; n < 3; n++)
		ids[n] = dut_post(dut, n == 1 ? ENG_WRITE : ENG_READ, READ_BYTES, ENG_SIGNALED);
	dut_forget(dut);
	answer_without(dut, 0, 1 << 0);
	expect_request(dut, 0, 0, 1);
	answer_without(dut, 2, 1 << 4);
	expect_request(dut, 2, 4, 5);
	expect_no_wc(dut);
	answer(dut, 0, 0, WIRE_READ_RESPONSE_ONLY);
	expect_wc(dut, ids[0], ENG_SUCCESS);
	expect_wc(dut, ids[1], ENG_SUCCESS);
	expect_no_wc(dut);
	answer(dut, 2, 4, WIRE_READ_RESPONSE_ONLY);
	expect_wc(dut, ids[2], ENG_SUCCESS);
	assert_int_equal(dut_view(dut).outstanding_reads, 0);
}

/* What has come is not written again, though it comes again and is other than it was. */
static void test_placed_once(void **state)
{
	struct dut *dut = reader(DUT_SQ_PSN);

	(void)state;
	dut_post(dut, ENG_READ, READ_BYTES, ENG_SIGNALED);
	dut_forget(dut);
	answer_without(dut, 0, 1 << 1);
	memset(data, 0xee, READ_BYTES);
	answer(dut, 0, 4, usual(4));
	expect_pattern(dut->local + 4 * DUT_MTU, DUT_MTU, 9000 + 4 * DUT_MTU);
}

/* A response of another form is not placed: all is asked for again from the gap on. */
static void test_wrong_form_is_not_placed(void **state)
{
	struct dut *dut = reader(DUT_SQ_PSN);

	(void)state;
	dut_post(dut, ENG_READ, READ_BYTES, ENG_SIGNALED);
	dut_forget(dut);
	answer(dut, 0, 0, usual(0));
	answer(dut, 0, 3, WIRE_READ_RESPONSE_LAST);
	expect_request(dut, 0, 1, PACKETS);
	assert_int_equal(dut->local[3 * DUT_MTU], 0);
}

/* An answer that does not come is asked for again, and in the end all is. */
static void test_answer_is_lost_as_well(void **state)
{
	struct dut *dut = reader(DUT_SQ_PSN);
	uint64_t id = dut_post(dut, ENG_READ, READ_BYTES, ENG_SIGNALED), began = dut->now;

	(void)state;
	/* rule S10 test */
	dut_forget(dut);
	answer_without(dut, 0, 1 << 2);
	expect_request(dut, 0, 2, 3);
	assert_true(dut_advance_to_deadline(dut));
	assert_true(dut->now - began < 10 * MS);
	expect_request(dut, 0, 2, 3);
	while (dut_view(dut).counters[ENG_COUNT_TIMEOUTS] == 0)
		assert_true(dut_advance_to_deadline(dut));
	dut_pull(dut);
	dut->sent_read = dut->sent_count - 1;
	expect_request(dut, 0, 2, PACKETS);
	/* What has been placed, has been. */
	answer(dut, 0, 2, WIRE_READ_RESPONSE_FIRST);
	expect_wc(dut, id, ENG_SUCCESS);
	expect_pattern(dut->local, READ_BYTES, 9000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DUT_TEST(test_gap_alone),
		DUT_TEST(test_gaps_are_one_range),
		DUT_TEST(test_order_stays),
		DUT_TEST(test_placed_once),
		DUT_TEST(test_wrong_form_is_not_placed),
		DUT_TEST(test_answer_is_lost_as_well),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
