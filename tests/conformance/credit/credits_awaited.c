/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A request without credit may wait for a credit update for a limited time, if the peer sends
 * unsolicited ACKs and has sent an RNR NAK before.
 */
#include "dut.h"

#define REFUSAL RNR_NAK(12)
#define REFUSAL_NS (640 * US)

/*
 * Returns a dut after two acknowledged SENDs, with no credit left.  volunteered: an unsolicited ACK
 * reported the credit of the first one.  refusal: syndrome of the RNR NAK that the second one got
 * at first, or 0.
 */
static struct dut *dut_refused(bool volunteered, uint8_t refusal)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });

	if (volunteered)
		dut_ack(dut, DUT_SQ_PSN - 1, ACK_CODE(1), 0);
	dut_post(dut, ENG_SEND, 8, 0);
	expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN);
	dut_ack(dut, DUT_SQ_PSN, ACK_CODE(0), 1);
	dut_post(dut, ENG_SEND, 8, 0);
	expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN + 1);
	if (refusal) {
		dut_nak(dut, DUT_SQ_PSN + 1, refusal, 1);
		expect_silence(dut);
		dut_advance_to_deadline(dut);
		expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN + 1);
	}
	dut_ack(dut, DUT_SQ_PSN + 1, ACK_CODE(0), 2);
	return dut;
}

static uint64_t limited_requests(const struct dut *dut)
{
	return dut_info(dut).counters[ENG_COUNT_LIMITED_REQUESTS];
}

/* A credit update arrives during the wait: the request is sent at once, and is not limited. */
static void test_news_come_in_time(void **state)
{
	struct dut *dut = dut_refused(true, REFUSAL);
	uint64_t limited = limited_requests(dut);

	(void)state;
	/* rule C10 test, rule C13 test */
	dut_post(dut, ENG_SEND, 3 * DUT_MTU, 0);
	dut_post(dut, ENG_WRITE, 8, 0);
	expect_silence(dut);
	assert_int_equal(dut->why, ENG_TX_CREDIT);
	dut_advance(dut, REFUSAL_NS - 1);
	expect_silence(dut);
	dut_ack(dut, DUT_SQ_PSN + 1, ACK_CODE(1), 2);
	expect_packet(dut, WIRE_SEND_FIRST, DUT_SQ_PSN + 2);
	expect_packet(dut, WIRE_SEND_MIDDLE, DUT_SQ_PSN + 3);
	expect_packet(dut, WIRE_SEND_LAST, DUT_SQ_PSN + 4);
	expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN + 5);
	assert_int_equal(limited_requests(dut), limited);
	/* The next limited request may wait for the full time again. */
	dut_ack(dut, DUT_SQ_PSN + 5, ACK_CODE(0), 4);
	dut_post(dut, ENG_SEND, 8, 0);
	dut_advance(dut, REFUSAL_NS - 1);
	expect_silence(dut);
}

/*
 * No update arrives (it may be lost): the limited request is sent as without the wait, and so are
 * those after it.
 */
static void test_news_do_not_come(void **state)
{
	struct dut *dut = dut_refused(true, REFUSAL);
	uint64_t start = dut->now;

	(void)state;
	/* rule C13 test, rule U2 test */
	dut_post(dut, ENG_SEND, 3 * DUT_MTU, 0);
	dut_post(dut, ENG_SEND, 8, 0);
	expect_silence(dut);
	assert_true(dut_advance_to_deadline(dut));
	assert_int_equal(dut->now, start + REFUSAL_NS);
	assert_true(expect_packet(dut, WIRE_SEND_FIRST, DUT_SQ_PSN + 2)->ack_request);
	expect_silence(dut);
	dut_ack(dut, DUT_SQ_PSN + 2, ACK_CODE(0), 2);
	expect_packet(dut, WIRE_SEND_MIDDLE, DUT_SQ_PSN + 3);
	expect_packet(dut, WIRE_SEND_LAST, DUT_SQ_PSN + 4);
	dut_ack(dut, DUT_SQ_PSN + 4, ACK_CODE(0), 3);
	assert_true(expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN + 5)->ack_request);
	dut_ack(dut, DUT_SQ_PSN + 5, ACK_CODE(0), 4);
	/* After an unsolicited ACK with credits the next limited request waits again. */
	dut_ack(dut, DUT_SQ_PSN + 5, ACK_CODE(1), 4);
	dut_post(dut, ENG_SEND, 8, 0);
	dut_post(dut, ENG_SEND, 8, 0);
	expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN + 6);
	expect_silence(dut);
}

/* eng_transmit() is called after the end of the wait, without eng_expire(): the request is sent. */
static void test_asked_too_late(void **state)
{
	struct dut *dut = dut_refused(true, REFUSAL);

	(void)state;
	/* rule C13 test */
	dut_post(dut, ENG_SEND, 8, 0);
	expect_silence(dut);
	dut->now += 10 * MS;
	assert_true(expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN + 2)->ack_request);
}

/* The wait is limited to 2 ms, although the peer's RNR NAK timer is 655 ms. */
static void test_the_wait_is_bounded(void **state)
{
	struct dut *dut = dut_refused(true, RNR_NAK(0));
	uint64_t start = dut->now;

	(void)state;
	/* rule C13 test */
	dut_post(dut, ENG_SEND, 8, 0);
	expect_silence(dut);
	assert_true(dut_advance_to_deadline(dut));
	assert_int_equal(dut->now, start + 2 * MS);
	expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN + 2);
}

/* No request waits for a peer that has sent no unsolicited ACK, or no RNR NAK. */
static void test_others_are_asked_at_once(void **state)
{
	static const struct {
		bool volunteered;
		uint8_t refusal;
	} peers[] = { { false, REFUSAL }, { true, 0 }, { false, 0 } };

	(void)state;
	/* rule C13 test */
	for (int i = 0; i < 3; i++) {
		struct dut *dut;

		/* Without volunteered credits the first SEND is a limited request, too. */
		dut = dut_refused(peers[i].volunteered, peers[i].refusal);
		dut_post(dut, ENG_SEND, 8, 0);
		assert_true(expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN + 2)->ack_request);
	}
}

/*
 * A request that needs no receive does not wait, and a peer that reports no credits sets no limit.
 */
static void test_what_needs_no_credit(void **state)
{
	struct dut *dut = dut_refused(true, REFUSAL);

	(void)state;
	/* rule C3 test, rule C14 test */
	dut_post(dut, ENG_WRITE, 8, 0);
	expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN + 2);
	dut_post(dut, ENG_SEND, 8, 0);
	expect_silence(dut);
	assert_int_equal(dut->why, ENG_TX_CREDIT);
	dut_ack(dut, DUT_SQ_PSN + 2, NO_CREDITS_REPORTED, 3);
	expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN + 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DUT_TEST(test_news_come_in_time),	 DUT_TEST(test_news_do_not_come),
		DUT_TEST(test_asked_too_late),		 DUT_TEST(test_the_wait_is_bounded),
		DUT_TEST(test_others_are_asked_at_once), DUT_TEST(test_what_needs_no_credit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
