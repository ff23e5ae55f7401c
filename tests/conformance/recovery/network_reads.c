/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * ACK probe for READs on a network: its response shows whether the oldest READ has been executed.
 */
#include "dut.h"

/* The next PSN to be answered, and the number of READs that the peer has executed. */
static uint32_t first, reads;

/* Longest pause so far of the READ responses. */
#define SILENCE (500 * US)

/* Gives the next response to a READ of two packets, after this time. */
static void respond(struct dut *dut, uint8_t opcode, uint64_t after)
{
	static const uint8_t bytes[DUT_MTU];
	struct wire_packet packet = dut_packet(dut, opcode, first++);

	packet.syndrome = ACK_CODE(5);
	packet.msn = reads;
	packet.payload = bytes;
	packet.payload_length = DUT_MTU;
	dut_advance(dut, after);
	dut_give(dut, &packet);
}

static void respond_to_one(struct dut *dut, uint64_t after)
{
	reads++;
	respond(dut, WIRE_READ_RESPONSE_FIRST, after);
	respond(dut, WIRE_READ_RESPONSE_LAST, after);
}

/* Returns a dut with the last of four READs in flight. */
static struct dut *start_reads(void)
{
	struct dut *dut = dut_rts((struct dut_config){ .network = true });

	first = DUT_SQ_PSN;
	reads = 0;
	dut_ack(dut, first - 1, ACK_CODE(5), 0);
	for (unsigned int i = 0; i < 4; i++) {
		dut_post(dut, ENG_READ, 2 * DUT_MTU, ENG_SIGNALED);
		expect_packet(dut, WIRE_READ_REQUEST, first);
		if (i < 3)
			respond_to_one(dut, i == 0 ? SILENCE : SILENCE / 8);
		dut_forget(dut);
	}
	return dut;
}

/*
 * Expects an ACK probe after a longer pause than before, but less than four times that, and gives
 * its response.  The peer has acknowledged no SEND or WRITE, and reports the number of executed
 * READs (MSN).
 */
static void answer_sentinel_of_reads(struct dut *dut)
{
	dut_advance(dut, SILENCE);
	expect_silence(dut);
	assert_true(eng_deadline(dut->qp) < dut->now + 3 * SILENCE);
	dut_advance_to_deadline(dut);
	assert_int_equal(expect_packet(dut, WIRE_SEND_ONLY, first - 1)->payload_length, 0);
	expect_silence(dut);
	dut_ack(dut, DUT_SQ_PSN - 1, ACK_CODE(5), reads);
}

/* rule C11: the MSN shows that the READ has not been executed, so it is sent again. */
static void test_lost_read(void **state)
{
	struct dut *dut = start_reads();

	(void)state;
	answer_sentinel_of_reads(dut);
	expect_packet(dut, WIRE_READ_REQUEST, first);
	expect_silence(dut);
	respond_to_one(dut, SILENCE / 8);
	assert_int_equal(eng_in_flight(dut->qp), 0);
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_TAIL_LOSS_PROBES], 0);
}

/* The MSN shows that the READ has been executed; its responses may be in flight. */
static void test_late_response(void **state)
{
	struct dut *dut = start_reads();

	(void)state;
	reads++;
	answer_sentinel_of_reads(dut);
	expect_silence(dut);
	respond(dut, WIRE_READ_RESPONSE_FIRST, SILENCE / 8);
	respond(dut, WIRE_READ_RESPONSE_LAST, SILENCE / 8);
	assert_int_equal(eng_in_flight(dut->qp), 0);
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_FAST_RETRANSMITS], 0);
}

/*
 * The response to the ACK probe for a READ may arrive after the READ responses, so there is no ACK
 * probe for a WRITE sent then: a probe repeats the WRITE.
 */
static void test_no_sentinel_behind_one_of_a_read(void **state)
{
	struct dut *dut = start_reads();

	(void)state;
	dut_advance_to_deadline(dut);
	expect_packet(dut, WIRE_SEND_ONLY, first - 1);
	respond_to_one(dut, SILENCE / 8);
	dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
	expect_packet(dut, WIRE_WRITE_ONLY, first);
	dut_advance_to_deadline(dut);
	expect_packet(dut, WIRE_WRITE_ONLY, first);
	expect_silence(dut);
}

/*
 * No ACK is sent between the responses of a READ, so an ACK after the first one shows that the last
 * one is lost; it is requested alone.
 */
static void test_lost_end_of_response(void **state)
{
	struct dut *dut = start_reads();

	(void)state;
	reads++;
	respond(dut, WIRE_READ_RESPONSE_FIRST, SILENCE / 8);
	answer_sentinel_of_reads(dut);
	assert_int_equal(expect_packet(dut, WIRE_READ_REQUEST, first)->dma_length, DUT_MTU);
	expect_silence(dut);
	respond(dut, WIRE_READ_RESPONSE_ONLY, SILENCE / 8);
	assert_int_equal(eng_in_flight(dut->qp), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DUT_TEST(test_lost_read),
		DUT_TEST(test_late_response),
		DUT_TEST(test_no_sentinel_behind_one_of_a_read),
		DUT_TEST(test_lost_end_of_response),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
