/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Timers and retry counters: exact numbers of tries at exact times. */
#include "dut.h"

/* Local ACK Timeout code 8: 4.096 us x 2^8. */
#define TIMEOUT_CODE 8
#define TIMEOUT (UINT64_C(4096) * 256)

static struct dut *unlimited(struct dut_config config)
{
	config.timeout_code = config.timeout_code ? config.timeout_code : TIMEOUT_CODE;
	return dut_unlimited(config);
}

/*
 * retry_cnt n: n retries after the first transmission, then the error and the flush.  The first two
 * retries are sent after one timeout each, the others after four each.
 */
static void test_retry_count(void **state)
{
	static const uint32_t counts[] = { DUT_NO_RETRY, 1, 3, 7 };
	static const uint32_t timeouts[] = { 0, 1, 2, 6, 10, 14, 18, 22 };

	(void)state;
	/* rule S10 test: 7 is a count of seven, not unlimited. */
	for (int i = 0; i < 4; i++) {
		struct dut *dut = unlimited((struct dut_config){ .retry_count = counts[i] });
		uint64_t first = dut_post(dut, ENG_SEND, 8, 0);
		uint64_t second = dut_post(dut, ENG_SEND, 8, 0), start = dut->now;
		uint32_t tries = 1 + dut->config.retry_count;

		dut_advance(dut, 26 * TIMEOUT);
		assert_int_equal(dut->sent_count, 2 * tries);
		for (uint32_t try = 0; try < tries; try++) {
			expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN);
			expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN + 1);
			assert_true(dut->sent[2 * try].time == start + timeouts[try] * TIMEOUT);
		}
		expect_wc(dut, first, ENG_RETRY_EXC_ERR);
		expect_wc(dut, second, ENG_WR_FLUSH_ERR);
		expect_no_wc(dut);
		assert_int_equal(eng_qp_state(dut->qp), ENG_ERR);
		assert_int_equal(dut_info(dut).counters[ENG_COUNT_TIMEOUTS], tries);
		assert_int_equal(dut_info(dut).counters[ENG_COUNT_RETRY_EXCEEDED], 1);
	}
}

/*
 * Packets for which the transport has no room are not in flight: their timer starts when they are
 * sent.
 */
static void test_time_of_what_waits_for_room(void **state)
{
	struct dut *dut = unlimited((struct dut_config){ .retry_count = 1 });
	struct eng_burst burst = dut_empty_burst(dut, DUT_BURST_PACKETS);

	(void)state;
	/* rule S10 test */
	dut_post(dut, ENG_SEND, 8, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(dut_transmit(dut, &burst, ENG_REQUESTS), ENG_TX_BURST);
		eng_tx_rollback(dut->qp, &burst);
		assert_true(eng_deadline(dut->qp) == ENG_NEVER);
		dut->now += TIMEOUT;
		eng_expire(dut->qp, dut->now);
	}
	expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN);
	assert_int_equal(dut_info(dut).retries_left, 1);
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_TIMEOUTS], 0);
	assert_true(eng_timer(dut->qp) <= dut->now + TIMEOUT);
}

/* The error comes one timeout after the last try, not before. */
static void test_time_of_the_error(void **state)
{
	struct dut *dut = unlimited((struct dut_config){ .retry_count = 2 });

	(void)state;
	/* rule S10 test */
	dut_post(dut, ENG_SEND, 8, 0);
	dut_advance(dut, (1 + 1 + 4) * TIMEOUT - 1);
	expect_no_wc(dut);
	dut_advance(dut, 1);
	assert_int_equal(dut->wc_count, 1);
}

/* Progress restarts the timer and the retry counter. */
static void test_progress_restarts(void **state)
{
	struct dut *dut = unlimited((struct dut_config){ .retry_count = 2 });

	(void)state;
	/* rule S10 test */
	dut_post(dut, ENG_SEND, 2 * DUT_MTU, ENG_SIGNALED);
	dut_post(dut, ENG_SEND, 8, ENG_SIGNALED);
	dut_forget(dut);
	dut_advance_to_deadline(dut);
	dut_advance_to_deadline(dut);
	assert_int_equal(dut_info(dut).retries_left, 0);
	dut->now += TIMEOUT / 2;
	dut_ack(dut, DUT_SQ_PSN, NO_CREDITS_REPORTED, 0);
	assert_int_equal(dut_info(dut).retries_left, 2);
	assert_true(eng_deadline(dut->qp) == dut->now + TIMEOUT);
	dut->now += TIMEOUT / 2;
	dut_ack(dut, DUT_SQ_PSN + 1, NO_CREDITS_REPORTED, 1);
	assert_true(eng_deadline(dut->qp) == dut->now + TIMEOUT);
	dut_forget(dut);
	dut_advance(dut, 10 * TIMEOUT);
	assert_int_equal(dut->sent_count - dut->sent_read, 2);
	expect_wc(dut, 0x1000, ENG_SUCCESS);
	expect_wc(dut, 0x1001, ENG_RETRY_EXC_ERR);
}

static void answer_read(struct dut *dut, uint32_t packet)
{
	static const uint8_t payload[DUT_MTU];
	uint8_t opcode = packet == 0 ? WIRE_READ_RESPONSE_FIRST : WIRE_READ_RESPONSE_LAST;

	dut_give_response(dut, opcode, DUT_SQ_PSN + packet, 1, payload, DUT_MTU);
}

/*
 * The first response to a READ arrived after the timeout, so the READ was sent and answered twice.
 * The second responses show that the peer is active and restart the timer of the next READ, but
 * each of them only once.  From then on the timeout is four times as long.
 */
static void test_answers_given_again_restart_the_timer(void **state)
{
	struct dut *dut = unlimited((struct dut_config){ .retry_count = 1 });

	(void)state;
	/* rule S10 test */
	dut_post(dut, ENG_READ, 2 * DUT_MTU, ENG_SIGNALED);
	dut_advance(dut, TIMEOUT);
	for (uint32_t packet = 0; packet < 2; packet++)
		answer_read(dut, packet);
	expect_wc(dut, 0x1000, ENG_SUCCESS);
	dut_post(dut, ENG_READ, 8, ENG_SIGNALED);
	dut_forget(dut);
	dut_advance(dut, TIMEOUT - 1);
	answer_read(dut, 0);
	dut_advance(dut, 4 * TIMEOUT - 1);
	answer_read(dut, 1);
	dut_advance(dut, 4 * TIMEOUT - 1);
	answer_read(dut, 0);
	expect_silence(dut);
	dut_advance(dut, 1);
	expect_packet(dut, WIRE_READ_REQUEST, DUT_SQ_PSN + 2);
	assert_int_equal(dut_info(dut).retries_left, 0);
	dut_advance(dut, 4 * TIMEOUT - 1);
	expect_no_wc(dut);
	dut_advance(dut, 1);
	expect_wc(dut, 0x1001, ENG_RETRY_EXC_ERR);
}

/* The timer runs only while something is unacknowledged, and starts with the first packet. */
static void test_idle_has_no_timer(void **state)
{
	struct dut *dut = unlimited((struct dut_config){ 0 });

	(void)state;
	/* rule S10 test */
	assert_true(eng_deadline(dut->qp) == ENG_NEVER);
	dut_post(dut, ENG_SEND, 8, ENG_SIGNALED);
	dut_forget(dut);
	dut_ack(dut, DUT_SQ_PSN, NO_CREDITS_REPORTED, 1);
	assert_true(eng_deadline(dut->qp) == ENG_NEVER);
	dut->now += 50 * TIMEOUT;
	dut_post(dut, ENG_SEND, 8, ENG_SIGNALED);
	dut_forget(dut);
	assert_true(eng_deadline(dut->qp) == dut->now + TIMEOUT);
}

/* Sequence NAKs and implied NAKs use the same counter as timeouts. */
static void test_naks_count_as_retries(void **state)
{
	struct dut *dut = unlimited((struct dut_config){ .retry_count = 1 });

	(void)state;
	/* rule S10 test */
	dut_post(dut, ENG_SEND, 8, 0);
	dut_forget(dut);
	dut_nak(dut, DUT_SQ_PSN, NAK_SEQUENCE, 0);
	expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN);
	assert_int_equal(dut_info(dut).retries_left, 0);
	dut_advance(dut, TIMEOUT);
	expect_wc(dut, 0x1000, ENG_RETRY_EXC_ERR);
}

/* After an RNR NAK nothing is sent for exactly the time of its timer, for all 32 codes. */
static void test_rnr_timers(void **state)
{
	static const uint32_t hundredths_of_ms[32] = {
		65536, 1,    2,	   3,	 4,    6,     8,     12,    16,	   24,	  32,
		48,    64,   96,   128,	 192,  256,   384,   512,   768,   1024,  1536,
		2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
	};

	(void)state;
	/* rule S10 test */
	for (unsigned int code = 0; code < 32; code++) {
		struct dut *dut = unlimited((struct dut_config){ 0 });
		uint64_t wait = hundredths_of_ms[code] * 10 * US;

		dut_post(dut, ENG_SEND, 8, ENG_SIGNALED);
		dut_forget(dut);
		dut_nak(dut, DUT_SQ_PSN, (uint8_t)RNR_NAK(code), 0);
		expect_silence(dut);
		assert_int_equal(dut->why, ENG_TX_RNR);
		dut_advance(dut, wait - 1);
		expect_silence(dut);
		dut_advance(dut, 1);
		expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN);
		expect_silence(dut);
		dut_ack(dut, DUT_SQ_PSN, NO_CREDITS_REPORTED, 1);
		expect_wc(dut, 0x1000, ENG_SUCCESS);
		dut_teardown(NULL);
	}
}

/* rnr_retry n: n retries, and another RNR NAK after them is the error; 7 is unlimited. */
static void test_rnr_retry(void **state)
{
	static const uint32_t counts[] = { DUT_NO_RETRY, 1, 6, 7 };

	(void)state;
	/* rule S10 test */
	for (int i = 0; i < 4; i++) {
		struct dut *dut = unlimited((struct dut_config){ .rnr_retry = counts[i] });
		uint64_t first = dut_post(dut, ENG_SEND, 8, 0);
		uint64_t second = dut_post(dut, ENG_SEND, 8, 0);
		uint32_t tries = 0;

		for (; tries < 100 && eng_qp_state(dut->qp) == ENG_RTS; tries++) {
			expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN);
			expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN + 1);
			expect_silence(dut);
			dut_nak(dut, DUT_SQ_PSN, RNR_NAK(1), 0);
			dut_advance(dut, 10 * US);
		}
		if (dut->config.rnr_retry == 7) {
			assert_int_equal(tries, 100);
			expect_no_wc(dut);
			continue;
		}
		assert_int_equal(tries, 1 + dut->config.rnr_retry);
		expect_wc(dut, first, ENG_RNR_RETRY_EXC_ERR);
		expect_wc(dut, second, ENG_WR_FLUSH_ERR);
		assert_int_equal(dut_info(dut).counters[ENG_COUNT_RNR_RETRY_EXCEEDED], 1);
		assert_int_equal(dut_info(dut).counters[ENG_COUNT_RECEIVED_RNR], tries);
	}
}

/* Progress restores the RNR retries as well. */
static void test_progress_restarts_rnr_retries(void **state)
{
	struct dut *dut = unlimited((struct dut_config){ .rnr_retry = 1 });

	(void)state;
	/* rule S10 test */
	for (uint32_t i = 0; i < 3; i++) {
		dut_post(dut, ENG_SEND, 8, ENG_SIGNALED);
		expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN + i);
		dut_nak(dut, DUT_SQ_PSN + i, RNR_NAK(1), i);
		assert_int_equal(dut_info(dut).rnr_retries_left, 0);
		dut_advance(dut, 10 * US);
		expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN + i);
		dut_ack(dut, DUT_SQ_PSN + i, NO_CREDITS_REPORTED, i + 1);
		expect_wc(dut, 0x1000 + i, ENG_SUCCESS);
		assert_int_equal(dut_info(dut).rnr_retries_left, 1);
	}
}

/* RNR waits do not use up retry_cnt, and the ACK timer does not run during the wait. */
static void test_rnr_uses_no_retries(void **state)
{
	struct dut *dut = unlimited((struct dut_config){ .retry_count = DUT_NO_RETRY });

	(void)state;
	/* rule S10 test */
	dut_post(dut, ENG_SEND, 8, ENG_SIGNALED);
	for (int i = 0; i < 3; i++) {
		expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN);
		dut_nak(dut, DUT_SQ_PSN, RNR_NAK(0), 0);
		dut_advance(dut, 655360 * US);
	}
	expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN);
	expect_no_wc(dut);
}

/*
 * rule S4 test: Linux's rxe sends a sequence NAK after an RNR NAK for the same packet, which may
 * arrive late.  The packet has been sent again by then, so the NAK has no effect and uses up no
 * retry until there is progress.
 */
static void test_sequence_nak_after_an_rnr_wait(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .rnr_retry = 7 });

	(void)state;
	for (int i = 0; i < 2; i++)
		dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
	dut_pull(dut);
	dut_nak(dut, DUT_SQ_PSN, NAK_SEQUENCE, 0);
	dut_pull(dut);
	for (int i = 0; i < 10; i++) {
		uint32_t retries = dut_info(dut).retries_left;

		dut_nak(dut, DUT_SQ_PSN, RNR_NAK(1), 0);
		dut_nak(dut, DUT_SQ_PSN, NAK_SEQUENCE, 0);
		dut_advance_to_deadline(dut);
		dut_pull(dut);
		dut_forget(dut);
		dut_nak(dut, DUT_SQ_PSN, NAK_SEQUENCE, 0);
		expect_silence(dut);
		assert_int_equal(dut_info(dut).retries_left, retries);
	}
	expect_no_wc(dut);
}

/* An RNR NAK acknowledges the requests before its PSN, and all later requests wait. */
static void test_rnr_in_the_middle(void **state)
{
	struct dut *dut = unlimited((struct dut_config){ 0 });

	(void)state;
	/* rule S11 test, rule S10 test */
	for (int i = 0; i < 4; i++)
		dut_post(dut, ENG_SEND, 8, ENG_SIGNALED);
	dut_forget(dut);
	dut_nak(dut, DUT_SQ_PSN + 2, RNR_NAK(14), 2);
	expect_wc(dut, 0x1000, ENG_SUCCESS);
	expect_wc(dut, 0x1001, ENG_SUCCESS);
	expect_no_wc(dut);
	dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
	expect_silence(dut);
	dut_advance(dut, 1280 * US);
	for (uint32_t i = 2; i < 5; i++)
		expect_packet(dut, i < 4 ? WIRE_SEND_ONLY : WIRE_WRITE_ONLY, DUT_SQ_PSN + i);
}

/* A sequence NAK for packets after the one with the RNR NAK does not end the wait (rxe's does). */
static void test_sequence_nak_keeps_the_rnr_wait(void **state)
{
	struct dut *dut = unlimited((struct dut_config){ 0 });
	struct eng_qp_info view;

	(void)state;
	/* rule S10 test */
	dut_post(dut, ENG_SEND, 8, ENG_SIGNALED);
	dut_post(dut, ENG_SEND, 8, ENG_SIGNALED);
	dut_forget(dut);
	dut_nak(dut, DUT_SQ_PSN, RNR_NAK(16), 0); /* 2.56 ms */
	view = dut_info(dut);
	dut_nak(dut, DUT_SQ_PSN, NAK_SEQUENCE, 0);
	dut_nak(dut, DUT_SQ_PSN, RNR_NAK(1), 0);
	assert_int_equal(dut_info(dut).retries_left, view.retries_left);
	assert_int_equal(dut_info(dut).rnr_retries_left, view.rnr_retries_left);
	expect_silence(dut);
	dut_advance(dut, 2560 * US - 1);
	expect_silence(dut);
	dut_advance(dut, 1);
	expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN);
	expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN + 1);
	expect_silence(dut);
}

static void expect_wait(struct dut *dut, uint64_t ns)
{
	dut_advance(dut, ns);
	expect_silence(dut);
	assert_int_equal(dut->why, ENG_TX_RNR);
}

/*
 * Neither further responses for the same packet nor posts shorten an RNR timer of 41 ms, for
 * requests with credits and without, and with an older request before them.
 */
static void test_nothing_ends_an_rnr_wait(void **state)
{
	static const enum eng_op ops[] = { ENG_SEND, ENG_WRITE_IMM };
	const uint64_t wait = 40960 * US;

	(void)state;
	/* rule S10 test, rule C9 test */
	for (uint32_t i = 0; i < 8; i++) {
		struct dut *dut = i & 1 ? unlimited((struct dut_config){ .timeout_code = 14 })
					: dut_rts((struct dut_config){ 0 });
		uint32_t before = i & 2 ? 1 : 0, psn = DUT_SQ_PSN + before;

		if (before)
			dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
		dut_post(dut, ops[i / 4], 3 * DUT_MTU, ENG_SIGNALED);
		dut_post(dut, ENG_SEND, 8, ENG_SIGNALED);
		dut_forget(dut);
		dut_nak(dut, psn, RNR_NAK(24), before);
		dut_nak(dut, psn, NAK_SEQUENCE, before);
		expect_wait(dut, 10 * US);
		dut_nak(dut, psn, NAK_SEQUENCE, before);
		expect_wait(dut, wait / 4);
		dut_ack(dut, psn - 1, ACK_CODE(5), before);
		dut_nak(dut, psn, NAK_SEQUENCE, before);
		dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
		expect_wait(dut, wait / 2);
		dut_nak(dut, psn, NAK_SEQUENCE, before);
		dut_nak(dut, psn, RNR_NAK(1), before);
		expect_wait(dut, wait / 4 - 10 * US - 1);
		dut_advance(dut, 1);
		expect_packet(dut, i / 4 ? WIRE_WRITE_FIRST : WIRE_SEND_FIRST, psn);
	}
}

/*
 * The responses to an older READ are missing, so the RNR NAK is an implied NAK of the READ (rule
 * S8).  Both requests are sent again after the wait, which a sequence NAK for the same packet does
 * not end.
 */
static void test_rnr_behind_a_missing_answer(void **state)
{
	struct dut *dut = unlimited((struct dut_config){ .timeout_code = 14 });

	(void)state;
	/* rule S10 test, rule S8 test */
	dut_post(dut, ENG_READ, 2 * DUT_MTU, ENG_SIGNALED);
	dut_post(dut, ENG_SEND, 8, ENG_SIGNALED);
	dut_forget(dut);
	dut_nak(dut, DUT_SQ_PSN + 2, RNR_NAK(24), 1);
	dut_nak(dut, DUT_SQ_PSN + 2, NAK_SEQUENCE, 1);
	expect_wait(dut, 40960 * US - 1);
	dut_advance(dut, 1);
	expect_packet(dut, WIRE_READ_REQUEST, DUT_SQ_PSN);
	expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN + 2);
	expect_silence(dut);
}

/* With no RNR retry left it is the SEND that fails, not the READ before it. */
static void test_last_rnr_behind_a_missing_answer(void **state)
{
	static uint8_t bytes[8];
	struct dut *dut = unlimited((struct dut_config){ .rnr_retry = DUT_NO_RETRY });
	uint64_t read, send;

	(void)state;
	/* rule S10 test, rule S8 test */
	read = dut_post(dut, ENG_READ, 8, ENG_SIGNALED);
	send = dut_post(dut, ENG_SEND, 8, ENG_SIGNALED);
	dut_forget(dut);
	dut_nak(dut, DUT_SQ_PSN + 1, RNR_NAK(24), 1);
	expect_packet(dut, WIRE_READ_REQUEST, DUT_SQ_PSN);
	expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN + 1);
	dut_give_response(dut, WIRE_READ_RESPONSE_ONLY, DUT_SQ_PSN, 1, bytes, 8);
	dut_nak(dut, DUT_SQ_PSN + 1, RNR_NAK(24), 1);
	expect_wc(dut, read, ENG_SUCCESS);
	expect_wc(dut, send, ENG_RNR_RETRY_EXC_ERR);
}

/* The wait ends even if eng_expire() is not called, so the next RNR NAK starts another wait. */
static void test_rnr_again_without_expire(void **state)
{
	struct dut *dut = unlimited((struct dut_config){ 0 });

	(void)state;
	/* rule S10 test */
	dut_post(dut, ENG_SEND, 8, ENG_SIGNALED);
	dut_forget(dut);
	dut_nak(dut, DUT_SQ_PSN, RNR_NAK(1), 0);
	dut->now += 10 * US;
	expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN);
	dut_nak(dut, DUT_SQ_PSN, RNR_NAK(1), 0);
	expect_silence(dut);
	assert_true(eng_deadline(dut->qp) == dut->now + 10 * US);
	dut->now += 10 * US;
	expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN);
}

/* A burst that could not be sent is sent again at once, and uses up no retry. */
static void test_unsent_burst(void **state)
{
	struct dut *dut = unlimited((struct dut_config){ .mtu = 256 });
	struct eng_burst burst = dut_empty_burst(dut, 3);
	struct eng_qp_info before;

	(void)state;
	/* rule S10 test */
	dut_post(dut, ENG_SEND, 5 * 256, ENG_SIGNALED);
	before = dut_info(dut);
	assert_int_equal(dut_transmit(dut, &burst, ENG_REQUESTS), ENG_TX_BURST);
	assert_int_equal(burst.packets, 3);
	eng_tx_rollback(dut->qp, &burst);
	assert_int_equal(dut_info(dut).retries_left, before.retries_left);
	expect_packet(dut, WIRE_SEND_FIRST, DUT_SQ_PSN);
	for (uint32_t i = 1; i < 4; i++)
		expect_packet(dut, WIRE_SEND_MIDDLE, DUT_SQ_PSN + i);
	expect_packet(dut, WIRE_SEND_LAST, DUT_SQ_PSN + 4);
	expect_silence(dut);
	assert_int_equal(dut_info(dut).retries_left, before.retries_left);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DUT_TEST(test_retry_count),
		DUT_TEST(test_time_of_what_waits_for_room),
		DUT_TEST(test_time_of_the_error),
		DUT_TEST(test_progress_restarts),
		DUT_TEST(test_answers_given_again_restart_the_timer),
		DUT_TEST(test_idle_has_no_timer),
		DUT_TEST(test_naks_count_as_retries),
		DUT_TEST(test_rnr_timers),
		DUT_TEST(test_rnr_retry),
		DUT_TEST(test_progress_restarts_rnr_retries),
		DUT_TEST(test_rnr_uses_no_retries),
		DUT_TEST(test_sequence_nak_after_an_rnr_wait),
		DUT_TEST(test_rnr_in_the_middle),
		DUT_TEST(test_sequence_nak_keeps_the_rnr_wait),
		DUT_TEST(test_nothing_ends_an_rnr_wait),
		DUT_TEST(test_rnr_behind_a_missing_answer),
		DUT_TEST(test_last_rnr_behind_a_missing_answer),
		DUT_TEST(test_rnr_again_without_expire),
		DUT_TEST(test_unsent_burst),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
