/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Limited requests: only the first packet of a SEND, but all of a WRITE with immediate, may be
 * sent.
 */
#include "dut.h"

/* A limited SEND: only its first packet is sent, with AckReq, until a response arrives. */
static void test_limited_send_stops_after_first(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });
	uint64_t id;

	(void)state;
	/* rule C13 test */
	id = dut_post(dut, ENG_SEND, 3 * DUT_MTU, ENG_SIGNALED);
	assert_true(expect_packet(dut, WIRE_SEND_FIRST, DUT_SQ_PSN)->ack_request);
	expect_silence(dut);
	assert_int_equal(dut->why, ENG_TX_CREDIT);
	assert_int_equal(dut_info(dut).waiting, ENG_TX_CREDIT);
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_LIMITED_REQUESTS], 1);

	/*
	 * The response shows that the SEND has taken a WQE, which is not in the credit count of 0.
	 */
	dut_ack(dut, DUT_SQ_PSN, ACK_CODE(0), 0);
	expect_packet(dut, WIRE_SEND_MIDDLE, DUT_SQ_PSN + 1);
	assert_true(expect_packet(dut, WIRE_SEND_LAST, DUT_SQ_PSN + 2)->ack_request);
	expect_silence(dut);
	dut_ack(dut, DUT_SQ_PSN + 2, ACK_CODE(0), 1);
	expect_wc(dut, id, ENG_SUCCESS);
}

/* Once its first packet is acknowledged, the rest of a limited SEND and later WRITEs are sent. */
static void test_answered_send_holds_up_nobody(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });

	(void)state;
	/* rule C14 test, rule C13 test */
	dut_post(dut, ENG_SEND, 2 * DUT_MTU, 0);
	dut_post(dut, ENG_WRITE, 8, 0);
	expect_packet(dut, WIRE_SEND_FIRST, DUT_SQ_PSN);
	expect_silence(dut);
	dut_ack(dut, DUT_SQ_PSN, ACK_CODE(0), 0);
	expect_packet(dut, WIRE_SEND_LAST, DUT_SQ_PSN + 1);
	expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN + 2);
	expect_silence(dut);
}

/* Each limited SEND waits for the response to the limited SEND before it. */
static void test_limited_sends_one_by_one(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });

	(void)state;
	/* rule C13 test, rule C15 test */
	for (int i = 0; i < 3; i++)
		dut_post(dut, ENG_SEND, 8, ENG_SIGNALED);
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN + i)->ack_request);
		expect_silence(dut);
		dut_ack(dut, DUT_SQ_PSN + i, ACK_CODE(0), i + 1);
	}
	assert_int_equal(dut->wc_count, 3);
}

/* An ACK of an earlier request without credits does not release the rest of a limited SEND. */
static void test_earlier_ack_does_not_release(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });

	(void)state;
	/* rule C13 test */
	dut_post(dut, ENG_WRITE, 8, 0);
	dut_post(dut, ENG_SEND, 2 * DUT_MTU, ENG_SIGNALED);
	expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN);
	expect_packet(dut, WIRE_SEND_FIRST, DUT_SQ_PSN + 1);
	expect_silence(dut);
	dut_ack(dut, DUT_SQ_PSN, ACK_CODE(0), 1);
	expect_silence(dut);
	assert_int_equal(dut->why, ENG_TX_CREDIT);
	/* An ACK that reports a credit does: the peer has posted a receive since. */
	dut_ack(dut, DUT_SQ_PSN, ACK_CODE(1), 1);
	expect_packet(dut, WIRE_SEND_LAST, DUT_SQ_PSN + 2);
	expect_silence(dut);
}

/* A limited WRITE with immediate: all packets are sent, with AckReq in the last. */
static void test_limited_write_imm_goes_whole(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });
	uint64_t id;

	(void)state;
	/* rule C13 test */
	id = dut_post(dut, ENG_WRITE_IMM, 3 * DUT_MTU, ENG_SIGNALED);
	dut_post(dut, ENG_WRITE_IMM, 8, ENG_SIGNALED);
	dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
	expect_packet(dut, WIRE_WRITE_FIRST, DUT_SQ_PSN);
	expect_packet(dut, WIRE_WRITE_MIDDLE, DUT_SQ_PSN + 1);
	assert_true(expect_packet(dut, WIRE_WRITE_LAST_IMM, DUT_SQ_PSN + 2)->ack_request);
	expect_silence(dut);
	assert_int_equal(dut->why, ENG_TX_CREDIT);
	/* An ACK of an earlier packet of it, without credits, does not release the next request. */
	dut_ack(dut, DUT_SQ_PSN + 1, ACK_CODE(0), 0);
	expect_silence(dut);
	dut_ack(dut, DUT_SQ_PSN + 2, ACK_CODE(0), 1);
	expect_wc(dut, id, ENG_SUCCESS);
	assert_true(expect_packet(dut, WIRE_WRITE_ONLY_IMM, DUT_SQ_PSN + 3)->ack_request);
	expect_silence(dut);
	dut_ack(dut, DUT_SQ_PSN + 3, ACK_CODE(0), 2);
	expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN + 4);
}

/* After an RNR NAK and its timer a limited SEND sends its first packet again, and no other. */
static void test_limited_send_after_rnr(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });
	uint64_t start;

	(void)state;
	/* rule C13 test, rule C17 test */
	dut_post(dut, ENG_SEND, 3 * DUT_MTU, ENG_SIGNALED);
	expect_packet(dut, WIRE_SEND_FIRST, DUT_SQ_PSN);
	dut_nak(dut, DUT_SQ_PSN, RNR_NAK(14), 0); /* 1.28 ms */
	start = dut->now;
	expect_silence(dut);
	assert_int_equal(dut->why, ENG_TX_RNR);
	dut_advance_to_deadline(dut);
	assert_int_equal(dut->now, start + 1280 * US);
	assert_true(expect_packet(dut, WIRE_SEND_FIRST, DUT_SQ_PSN)->ack_request);
	expect_silence(dut);
	dut_ack(dut, DUT_SQ_PSN, ACK_CODE(0), 0);
	expect_packet(dut, WIRE_SEND_MIDDLE, DUT_SQ_PSN + 1);
	expect_packet(dut, WIRE_SEND_LAST, DUT_SQ_PSN + 2);
}

/* The first packet of a limited SEND is lost: the timeout sends it again, and no other packet. */
static void test_limited_send_after_timeout(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });

	(void)state;
	/* rule C13 test, rule C17 test */
	dut_post(dut, ENG_SEND, 3 * DUT_MTU, ENG_SIGNALED);
	expect_packet(dut, WIRE_SEND_FIRST, DUT_SQ_PSN);
	assert_true(dut_advance_to_deadline(dut));
	assert_true(expect_packet(dut, WIRE_SEND_FIRST, DUT_SQ_PSN)->ack_request);
	expect_silence(dut);
	/* The peer reports credits by an unsolicited ACK. */
	dut_ack(dut, DUT_SQ_PSN - 1, ACK_CODE(1), 0);
	expect_packet(dut, WIRE_SEND_MIDDLE, DUT_SQ_PSN + 1);
	expect_packet(dut, WIRE_SEND_LAST, DUT_SQ_PSN + 2);
}

/* A request that was started with credits is retransmitted regardless of credits. */
static void test_retransmission_needs_no_credit(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });

	(void)state;
	/* rule C17 test */
	dut_ack(dut, DUT_SQ_PSN - 1, ACK_CODE(2), 0);
	dut_post(dut, ENG_SEND, 2 * DUT_MTU, ENG_SIGNALED);
	dut_post(dut, ENG_SEND, 2 * DUT_MTU, ENG_SIGNALED);
	dut_post(dut, ENG_SEND, 2 * DUT_MTU, ENG_SIGNALED);
	dut_forget(dut);
	/* Credits are used up; now all four packets and the limited request are lost. */
	dut_nak(dut, DUT_SQ_PSN, NAK_SEQUENCE, 0);
	/* The unsolicited ACK allows the peer to keep out-of-order requests. */
	expect_packet(dut, WIRE_ACKNOWLEDGE, DUT_RQ_PSN - 1);
	expect_packet(dut, WIRE_SEND_FIRST, DUT_SQ_PSN);
	expect_packet(dut, WIRE_SEND_LAST, DUT_SQ_PSN + 1);
	expect_packet(dut, WIRE_SEND_FIRST, DUT_SQ_PSN + 2);
	expect_packet(dut, WIRE_SEND_LAST, DUT_SQ_PSN + 3);
	assert_true(expect_packet(dut, WIRE_SEND_FIRST, DUT_SQ_PSN + 4)->ack_request);
	expect_silence(dut);
}

/* The requester sets AckReq when it has few credits, to get new ones before it must stop. */
static void test_asks_for_an_ack_when_low(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });
	const struct wire_packet *packet = NULL;

	(void)state;
	/* rule C10 test */
	dut_ack(dut, DUT_SQ_PSN - 1, ACK_CODE(2), 0);
	dut_post(dut, ENG_SEND, 8, 0);
	dut_post(dut, ENG_SEND, 8, 0);
	expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN);
	packet = expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN + 1);
	assert_true(packet->ack_request);
}

/* All requests that take a receive WQE are limited, even without payload. */
static void test_every_kind_that_takes_a_receive(void **state)
{
	static const struct {
		enum eng_op op;
		uint32_t length;
		uint8_t opcode;
	} kinds[] = {
		{ ENG_SEND, 0, WIRE_SEND_ONLY },
		{ ENG_SEND_IMM, 8, WIRE_SEND_ONLY_IMM },
		{ ENG_SEND_INV, 8, WIRE_SEND_ONLY_INVALIDATE },
		{ ENG_WRITE_IMM, 0, WIRE_WRITE_ONLY_IMM },
	};

	(void)state;
	/* rule C13 test */
	for (int i = 0; i < 4; i++) {
		struct dut *dut = dut_rts((struct dut_config){ 0 });

		dut_post(dut, kinds[i].op, kinds[i].length, 0);
		dut_post(dut, kinds[i].op, kinds[i].length, 0);
		assert_true(expect_packet(dut, kinds[i].opcode, DUT_SQ_PSN)->ack_request);
		expect_silence(dut);
		assert_int_equal(dut->why, ENG_TX_CREDIT);
	}
}

/* Returns a dut in RTR; the engine uses sq_psn only from RTS on. */
static struct dut *dut_at_rtr(uint32_t sq_psn)
{
	struct dut *dut = dut_new((struct dut_config){ .sq_psn = sq_psn });

	dut_raise(dut, ENG_RTR);
	return dut;
}

/* Initial credits that arrive in RTR are valid for the requester in RTS, whatever its sq_psn. */
static void test_initial_credits_in_rtr(void **state)
{
	static const uint32_t psns[] = { 1, 0x7fffff, 0x800000, 0xffffff };
	static const uint8_t codes[] = { ACK_CODE(2), NO_CREDITS_REPORTED };

	(void)state;
	/* rule C9 test, rule U2 test */
	for (int i = 0; i < 8; i++) {
		uint32_t psn = psns[i / 2];
		struct dut *dut = dut_at_rtr(psn);

		dut_ack(dut, psn - 1, codes[i % 2], 0);
		dut_set_state(dut, ENG_RTS);
		dut_post(dut, ENG_SEND, 2 * DUT_MTU, 0);
		dut_post(dut, ENG_SEND, 8, 0);
		expect_packet(dut, WIRE_SEND_FIRST, psn);
		expect_packet(dut, WIRE_SEND_LAST, (psn + 1) & 0xffffff);
		expect_packet(dut, WIRE_SEND_ONLY, (psn + 2) & 0xffffff);
		assert_int_equal(dut_info(dut).counters[ENG_COUNT_LIMITED_REQUESTS], 0);
	}
}

/* Before any request was sent an ACK with an MSN other than 0 is of another connection. */
static void test_old_credits_in_rtr(void **state)
{
	struct dut *dut = dut_at_rtr(0xffffff);

	(void)state;
	/* rule C9 test, rule C13 test */
	dut_ack(dut, 0xfffffe, ACK_CODE(2), 100);
	dut_set_state(dut, ENG_RTS);
	dut_post(dut, ENG_SEND, 2 * DUT_MTU, 0);
	assert_true(expect_packet(dut, WIRE_SEND_FIRST, 0xffffff)->ack_request);
	expect_silence(dut);
	assert_int_equal(dut->why, ENG_TX_CREDIT);
}

/* Initial credits are lost, or arrive in INIT: the response to the limited request reports them. */
static void test_lost_initial_credits(void **state)
{
	(void)state;
	/* rule C13 test, rule U2 test */
	for (int i = 0; i < 4; i++) {
		enum eng_op op = i % 2 ? ENG_WRITE_IMM : ENG_SEND;
		struct dut *dut = dut_new((struct dut_config){ .timeout_code = 8 });
		uint32_t end = DUT_SQ_PSN + 1, asked = op == ENG_SEND ? end - 1 : end;
		uint64_t id;

		dut_raise(dut, ENG_INIT);
		if (i / 2)
			dut_ack(dut, DUT_SQ_PSN - 1, ACK_CODE(9), 0);
		dut_raise(dut, ENG_RTS);
		id = dut_post(dut, op, 2 * DUT_MTU, ENG_SIGNALED);
		dut_pull(dut);
		assert_int_equal(dut->why, op == ENG_SEND ? ENG_TX_CREDIT : ENG_TX_IDLE);
		assert_true(dut->sent[dut->sent_count - 1].packet.ack_request);
		/* No response arrives: an ACK is requested again. */
		dut_forget(dut);
		dut_advance(dut, UINT64_C(4096) << 8);
		assert_true(dut->sent[dut->sent_count - 1].packet.ack_request);
		assert_int_equal(dut->sent[dut->sent_count - 1].packet.psn, asked);
		dut_ack(dut, asked, ACK_CODE(9), op != ENG_SEND);
		dut_pull(dut);
		dut_ack(dut, end, ACK_CODE(9), 1);
		expect_wc(dut, id, ENG_SUCCESS);
		dut_forget(dut);
		dut_post(dut, ENG_SEND, 2 * DUT_MTU, 0);
		expect_packet(dut, WIRE_SEND_FIRST, end + 1);
		expect_packet(dut, WIRE_SEND_LAST, end + 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DUT_TEST(test_limited_send_stops_after_first),
		DUT_TEST(test_answered_send_holds_up_nobody),
		DUT_TEST(test_limited_sends_one_by_one),
		DUT_TEST(test_earlier_ack_does_not_release),
		DUT_TEST(test_limited_write_imm_goes_whole),
		DUT_TEST(test_limited_send_after_rnr),
		DUT_TEST(test_initial_credits_in_rtr),
		DUT_TEST(test_old_credits_in_rtr),
		DUT_TEST(test_lost_initial_credits),
		DUT_TEST(test_limited_send_after_timeout),
		DUT_TEST(test_retransmission_needs_no_credit),
		DUT_TEST(test_asks_for_an_ack_when_low),
		DUT_TEST(test_every_kind_that_takes_a_receive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
