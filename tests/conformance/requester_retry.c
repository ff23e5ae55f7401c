/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Timers and retry counters: exact numbers of tries at exact times. */
#include "peer.h"

/* Local ACK Timeout code 8: 4.096 us x 2^8. */
#define TIMEOUT_CODE 8
#define TIMEOUT (UINT64_C(4096) * 256)

static struct peer *unlimited(struct peer_config config)
{
	struct peer *peer;

	config.timeout_code = config.timeout_code ? config.timeout_code : TIMEOUT_CODE;
	peer = peer_rts(config);
	peer_ack(peer, peer->config.sq_psn - 1, NO_CREDITS_REPORTED, 0);
	return peer;
}

/* retry_cnt n: the first try and n more, one timeout apart, then the error, then the flush. */
static void test_retry_count(void **state)
{
	static const uint32_t counts[] = { PEER_NO_RETRY, 1, 3, 7 };

	(void)state;
	/* rule S10 test: 7 is seven, not for ever. */
	for (int i = 0; i < 4; i++) {
		struct peer *peer = unlimited((struct peer_config){ .retry_count = counts[i] });
		uint64_t first = peer_post(peer, ENG_SEND, 8, 0);
		uint64_t second = peer_post(peer, ENG_SEND, 8, 0), start = peer->now;
		uint32_t tries = 1 + peer->config.retry_count;

		peer_advance(peer, 20 * TIMEOUT);
		assert_int_equal(peer->sent_count, 2 * tries);
		for (uint32_t try = 0; try < tries; try++) {
			expect_packet(peer, WIRE_SEND_ONLY, PEER_SQ_PSN);
			expect_packet(peer, WIRE_SEND_ONLY, PEER_SQ_PSN + 1);
			assert_true(peer->sent[2 * try].time == start + try * TIMEOUT);
		}
		expect_wc(peer, first, ENG_RETRY_EXC_ERR);
		expect_wc(peer, second, ENG_WR_FLUSH_ERR);
		expect_no_wc(peer);
		assert_int_equal(eng_qp_state(peer->qp), ENG_ERR);
		assert_int_equal(peer_view(peer).counters[ENG_COUNT_TIMEOUTS], tries);
		assert_int_equal(peer_view(peer).counters[ENG_COUNT_RETRY_EXCEEDED], 1);
	}
}

/* The error comes one timeout after the last try, not before. */
static void test_time_of_the_error(void **state)
{
	struct peer *peer = unlimited((struct peer_config){ .retry_count = 2 });

	(void)state;
	/* rule S10 test */
	peer_post(peer, ENG_SEND, 8, 0);
	peer_advance(peer, 3 * TIMEOUT - 1);
	expect_no_wc(peer);
	peer_advance(peer, 1);
	assert_int_equal(peer->wc_count, 1);
}

/* Timeout code 0: never. */
static void test_no_timeout(void **state)
{
	struct peer *peer = unlimited((struct peer_config){ .timeout_code = PEER_NO_TIMEOUT });

	(void)state;
	/* rule S10 test */
	peer_post(peer, ENG_SEND, 8, 0);
	peer_forget(peer);
	assert_true(eng_deadline(peer->qp) == ENG_NEVER);
	peer_advance(peer, 1000000 * MS);
	expect_silence(peer);
	expect_no_wc(peer);
}

/* Every code is 4.096 us x 2^n. */
static void test_timeout_codes(void **state)
{
	(void)state;
	/* rule S10 test */
	for (uint32_t code = 1; code < 32; code++) {
		struct peer *peer = unlimited((struct peer_config){ .timeout_code = code });

		peer_post(peer, ENG_SEND, 8, ENG_SIGNALED);
		peer_forget(peer);
		assert_true(eng_deadline(peer->qp) == peer->now + (UINT64_C(4096) << code));
		peer_teardown(NULL);
	}
}

/* Progress starts the timer and the counter anew. */
static void test_progress_restarts(void **state)
{
	struct peer *peer = unlimited((struct peer_config){ .retry_count = 2 });

	(void)state;
	/* rule S10 test */
	peer_post(peer, ENG_SEND, 2 * PEER_MTU, ENG_SIGNALED);
	peer_post(peer, ENG_SEND, 8, ENG_SIGNALED);
	peer_forget(peer);
	peer_advance_to_deadline(peer);
	peer_advance_to_deadline(peer);
	assert_int_equal(peer_view(peer).retries_left, 0);
	peer->now += TIMEOUT / 2;
	peer_ack(peer, PEER_SQ_PSN, NO_CREDITS_REPORTED, 0);
	assert_int_equal(peer_view(peer).retries_left, 2);
	assert_true(eng_deadline(peer->qp) == peer->now + TIMEOUT);
	peer->now += TIMEOUT / 2;
	peer_ack(peer, PEER_SQ_PSN + 1, NO_CREDITS_REPORTED, 1);
	assert_true(eng_deadline(peer->qp) == peer->now + TIMEOUT);
	peer_forget(peer);
	peer_advance(peer, 10 * TIMEOUT);
	assert_int_equal(peer->sent_count - peer->sent_read, 2);
	expect_wc(peer, 0x1000, ENG_SUCCESS);
	expect_wc(peer, 0x1001, ENG_RETRY_EXC_ERR);
}

/* The timer runs only while something is unacknowledged, and starts with the first packet. */
static void test_idle_has_no_timer(void **state)
{
	struct peer *peer = unlimited((struct peer_config){ 0 });

	(void)state;
	/* rule S10 test */
	assert_true(eng_deadline(peer->qp) == ENG_NEVER);
	peer_post(peer, ENG_SEND, 8, ENG_SIGNALED);
	peer_forget(peer);
	peer_ack(peer, PEER_SQ_PSN, NO_CREDITS_REPORTED, 1);
	assert_true(eng_deadline(peer->qp) == ENG_NEVER);
	peer->now += 50 * TIMEOUT;
	peer_post(peer, ENG_SEND, 8, ENG_SIGNALED);
	peer_forget(peer);
	assert_true(eng_deadline(peer->qp) == peer->now + TIMEOUT);
}

/* Sequence NAKs and implied NAKs use the same counter as timeouts. */
static void test_naks_count_as_retries(void **state)
{
	struct peer *peer = unlimited((struct peer_config){ .retry_count = 1 });

	(void)state;
	/* rule S10 test */
	peer_post(peer, ENG_SEND, 8, 0);
	peer_forget(peer);
	peer_nak(peer, PEER_SQ_PSN, NAK_SEQUENCE, 0);
	expect_packet(peer, WIRE_SEND_ONLY, PEER_SQ_PSN);
	assert_int_equal(peer_view(peer).retries_left, 0);
	peer_advance(peer, TIMEOUT);
	expect_wc(peer, 0x1000, ENG_RETRY_EXC_ERR);
}

/* Each of the 32 RNR timers is waited out, to the nanosecond, and nothing goes before. */
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
		struct peer *peer = unlimited((struct peer_config){ 0 });
		uint64_t wait = hundredths_of_ms[code] * 10 * US;

		peer_post(peer, ENG_SEND, 8, ENG_SIGNALED);
		peer_forget(peer);
		peer_nak(peer, PEER_SQ_PSN, (uint8_t)RNR_NAK(code), 0);
		expect_silence(peer);
		assert_int_equal(peer->why, ENG_TX_RNR);
		peer_advance(peer, wait - 1);
		expect_silence(peer);
		peer_advance(peer, 1);
		expect_packet(peer, WIRE_SEND_ONLY, PEER_SQ_PSN);
		expect_silence(peer);
		peer_ack(peer, PEER_SQ_PSN, NO_CREDITS_REPORTED, 1);
		expect_wc(peer, 0x1000, ENG_SUCCESS);
		peer_teardown(NULL);
	}
}

/* rnr_retry n: n further tries, the RNR NAK after them is the error; 7 is for ever. */
static void test_rnr_retry(void **state)
{
	static const uint32_t counts[] = { PEER_NO_RETRY, 1, 6, 7 };

	(void)state;
	/* rule S10 test */
	for (int i = 0; i < 4; i++) {
		struct peer *peer = unlimited((struct peer_config){ .rnr_retry = counts[i] });
		uint64_t first = peer_post(peer, ENG_SEND, 8, 0);
		uint64_t second = peer_post(peer, ENG_SEND, 8, 0);
		uint32_t tries = 0;

		for (; tries < 100 && eng_qp_state(peer->qp) == ENG_RTS; tries++) {
			expect_packet(peer, WIRE_SEND_ONLY, PEER_SQ_PSN);
			expect_packet(peer, WIRE_SEND_ONLY, PEER_SQ_PSN + 1);
			expect_silence(peer);
			peer_nak(peer, PEER_SQ_PSN, RNR_NAK(1), 0);
			peer_advance(peer, 10 * US);
		}
		if (peer->config.rnr_retry == 7) {
			assert_int_equal(tries, 100);
			expect_no_wc(peer);
			continue;
		}
		assert_int_equal(tries, 1 + peer->config.rnr_retry);
		expect_wc(peer, first, ENG_RNR_RETRY_EXC_ERR);
		expect_wc(peer, second, ENG_WR_FLUSH_ERR);
		assert_int_equal(peer_view(peer).counters[ENG_COUNT_RNR_RETRY_EXCEEDED], 1);
		assert_int_equal(peer_view(peer).counters[ENG_COUNT_RECEIVED_RNR], tries);
	}
}

/* Progress gives back the RNR retries as well. */
static void test_progress_restarts_rnr_retries(void **state)
{
	struct peer *peer = unlimited((struct peer_config){ .rnr_retry = 1 });

	(void)state;
	/* rule S10 test */
	for (uint32_t i = 0; i < 3; i++) {
		peer_post(peer, ENG_SEND, 8, ENG_SIGNALED);
		expect_packet(peer, WIRE_SEND_ONLY, PEER_SQ_PSN + i);
		peer_nak(peer, PEER_SQ_PSN + i, RNR_NAK(1), i);
		assert_int_equal(peer_view(peer).rnr_retries_left, 0);
		peer_advance(peer, 10 * US);
		expect_packet(peer, WIRE_SEND_ONLY, PEER_SQ_PSN + i);
		peer_ack(peer, PEER_SQ_PSN + i, NO_CREDITS_REPORTED, i + 1);
		expect_wc(peer, 0x1000 + i, ENG_SUCCESS);
		assert_int_equal(peer_view(peer).rnr_retries_left, 1);
	}
}

/* RNR waits do not use up retry_cnt, and the ACK timer does not run during the wait. */
static void test_rnr_uses_no_retries(void **state)
{
	struct peer *peer = unlimited((struct peer_config){ .retry_count = PEER_NO_RETRY });

	(void)state;
	/* rule S10 test */
	peer_post(peer, ENG_SEND, 8, ENG_SIGNALED);
	for (int i = 0; i < 3; i++) {
		expect_packet(peer, WIRE_SEND_ONLY, PEER_SQ_PSN);
		peer_nak(peer, PEER_SQ_PSN, RNR_NAK(0), 0);
		peer_advance(peer, 655360 * US);
	}
	expect_packet(peer, WIRE_SEND_ONLY, PEER_SQ_PSN);
	expect_no_wc(peer);
}

/* An RNR NAK acknowledges what is before its PSN, and what is behind waits with it. */
static void test_rnr_in_the_middle(void **state)
{
	struct peer *peer = unlimited((struct peer_config){ 0 });

	(void)state;
	/* rule S11 test, rule S10 test */
	for (int i = 0; i < 4; i++)
		peer_post(peer, ENG_SEND, 8, ENG_SIGNALED);
	peer_forget(peer);
	peer_nak(peer, PEER_SQ_PSN + 2, RNR_NAK(14), 2);
	expect_wc(peer, 0x1000, ENG_SUCCESS);
	expect_wc(peer, 0x1001, ENG_SUCCESS);
	expect_no_wc(peer);
	peer_post(peer, ENG_WRITE, 8, ENG_SIGNALED);
	expect_silence(peer);
	peer_advance(peer, 1280 * US);
	for (uint32_t i = 2; i < 5; i++)
		expect_packet(peer, i < 4 ? WIRE_SEND_ONLY : WIRE_WRITE_ONLY, PEER_SQ_PSN + i);
}

/* The sequence NAK that packets behind an RNR NAK provoke does not end the wait (rxe's does). */
static void test_sequence_nak_keeps_the_rnr_wait(void **state)
{
	struct peer *peer = unlimited((struct peer_config){ 0 });
	struct eng_view view;

	(void)state;
	/* rule S10 test */
	peer_post(peer, ENG_SEND, 8, ENG_SIGNALED);
	peer_post(peer, ENG_SEND, 8, ENG_SIGNALED);
	peer_forget(peer);
	peer_nak(peer, PEER_SQ_PSN, RNR_NAK(16), 0); /* 2.56 ms */
	view = peer_view(peer);
	peer_nak(peer, PEER_SQ_PSN, NAK_SEQUENCE, 0);
	peer_nak(peer, PEER_SQ_PSN, RNR_NAK(1), 0);
	assert_int_equal(peer_view(peer).retries_left, view.retries_left);
	assert_int_equal(peer_view(peer).rnr_retries_left, view.rnr_retries_left);
	expect_silence(peer);
	peer_advance(peer, 2560 * US - 1);
	expect_silence(peer);
	peer_advance(peer, 1);
	expect_packet(peer, WIRE_SEND_ONLY, PEER_SQ_PSN);
	expect_packet(peer, WIRE_SEND_ONLY, PEER_SQ_PSN + 1);
	expect_silence(peer);
}

static void expect_wait(struct peer *peer, uint64_t ns)
{
	peer_advance(peer, ns);
	expect_silence(peer);
	assert_int_equal(peer->why, ENG_TX_RNR);
}

/*
 * Whatever the peer says meanwhile about the same packet, and whatever is posted: 41 ms are 41 ms,
 * for requests with credits and without, and for such with an older one before them.
 */
static void test_nothing_ends_an_rnr_wait(void **state)
{
	static const enum eng_op ops[] = { ENG_SEND, ENG_WRITE_IMM };
	const uint64_t wait = 40960 * US;

	(void)state;
	/* rule S10 test, rule C9 test */
	for (uint32_t i = 0; i < 8; i++) {
		struct peer *peer = i & 1 ? unlimited((struct peer_config){ .timeout_code = 14 })
					  : peer_rts((struct peer_config){ 0 });
		uint32_t before = i & 2 ? 1 : 0, psn = PEER_SQ_PSN + before;

		if (before)
			peer_post(peer, ENG_WRITE, 8, ENG_SIGNALED);
		peer_post(peer, ops[i / 4], 3 * PEER_MTU, ENG_SIGNALED);
		peer_post(peer, ENG_SEND, 8, ENG_SIGNALED);
		peer_forget(peer);
		peer_nak(peer, psn, RNR_NAK(24), before);
		peer_nak(peer, psn, NAK_SEQUENCE, before);
		expect_wait(peer, 10 * US);
		peer_nak(peer, psn, NAK_SEQUENCE, before);
		expect_wait(peer, wait / 4);
		peer_ack(peer, psn - 1, ACK_CODE(5), before);
		peer_nak(peer, psn, NAK_SEQUENCE, before);
		peer_post(peer, ENG_WRITE, 8, ENG_SIGNALED);
		expect_wait(peer, wait / 2);
		peer_nak(peer, psn, NAK_SEQUENCE, before);
		peer_nak(peer, psn, RNR_NAK(1), before);
		expect_wait(peer, wait / 4 - 10 * US - 1);
		peer_advance(peer, 1);
		expect_packet(peer, i / 4 ? WIRE_WRITE_FIRST : WIRE_SEND_FIRST, psn);
	}
}

/*
 * The answer to an older READ is missing, so the RNR NAK asks for that too (rule S8); both are
 * asked for when the wait is over, and what follows about the same packet does not end it.
 */
static void test_rnr_behind_a_missing_answer(void **state)
{
	struct peer *peer = unlimited((struct peer_config){ .timeout_code = 14 });

	(void)state;
	/* rule S10 test, rule S8 test */
	peer_post(peer, ENG_READ, 2 * PEER_MTU, ENG_SIGNALED);
	peer_post(peer, ENG_SEND, 8, ENG_SIGNALED);
	peer_forget(peer);
	peer_nak(peer, PEER_SQ_PSN + 2, RNR_NAK(24), 1);
	peer_nak(peer, PEER_SQ_PSN + 2, NAK_SEQUENCE, 1);
	expect_wait(peer, 40960 * US - 1);
	peer_advance(peer, 1);
	expect_packet(peer, WIRE_READ_REQUEST, PEER_SQ_PSN);
	expect_packet(peer, WIRE_SEND_ONLY, PEER_SQ_PSN + 2);
	expect_silence(peer);
}

/* With no RNR retry left it is the SEND that fails, not the READ before it. */
static void test_last_rnr_behind_a_missing_answer(void **state)
{
	static uint8_t bytes[8];
	struct peer *peer = unlimited((struct peer_config){ .rnr_retry = PEER_NO_RETRY });
	uint64_t read, send;

	(void)state;
	/* rule S10 test, rule S8 test */
	read = peer_post(peer, ENG_READ, 8, ENG_SIGNALED);
	send = peer_post(peer, ENG_SEND, 8, ENG_SIGNALED);
	peer_forget(peer);
	peer_nak(peer, PEER_SQ_PSN + 1, RNR_NAK(24), 1);
	expect_packet(peer, WIRE_READ_REQUEST, PEER_SQ_PSN);
	expect_packet(peer, WIRE_SEND_ONLY, PEER_SQ_PSN + 1);
	peer_give_response(peer, WIRE_READ_RESPONSE_ONLY, PEER_SQ_PSN, 1, bytes, 8);
	peer_nak(peer, PEER_SQ_PSN + 1, RNR_NAK(24), 1);
	expect_wc(peer, read, ENG_SUCCESS);
	expect_wc(peer, send, ENG_RNR_RETRY_EXC_ERR);
}

/* The wait is over by the clock, whether or not eng_expire() was called: the next RNR counts. */
static void test_rnr_again_without_expire(void **state)
{
	struct peer *peer = unlimited((struct peer_config){ 0 });

	(void)state;
	/* rule S10 test */
	peer_post(peer, ENG_SEND, 8, ENG_SIGNALED);
	peer_forget(peer);
	peer_nak(peer, PEER_SQ_PSN, RNR_NAK(1), 0);
	peer->now += 10 * US;
	expect_packet(peer, WIRE_SEND_ONLY, PEER_SQ_PSN);
	peer_nak(peer, PEER_SQ_PSN, RNR_NAK(1), 0);
	expect_silence(peer);
	assert_true(eng_deadline(peer->qp) == peer->now + 10 * US);
	peer->now += 10 * US;
	expect_packet(peer, WIRE_SEND_ONLY, PEER_SQ_PSN);
}

/* A request that could not be handed to the wire is not lost time: it goes again at once. */
static void test_unsent_run(void **state)
{
	struct peer *peer = unlimited((struct peer_config){ .mtu = 256 });
	struct eng_run run = peer_empty_run(peer, 3);
	struct eng_view before;

	(void)state;
	/* rule S10 test */
	peer_post(peer, ENG_SEND, 5 * 256, ENG_SIGNALED);
	before = peer_view(peer);
	assert_int_equal(peer_transmit(peer, &run, ENG_REQUESTS), ENG_TX_RUN);
	assert_int_equal(run.packets, 3);
	eng_unsent(peer->qp, &run);
	assert_int_equal(peer_view(peer).retries_left, before.retries_left);
	expect_packet(peer, WIRE_SEND_FIRST, PEER_SQ_PSN);
	for (uint32_t i = 1; i < 4; i++)
		expect_packet(peer, WIRE_SEND_MIDDLE, PEER_SQ_PSN + i);
	expect_packet(peer, WIRE_SEND_LAST, PEER_SQ_PSN + 4);
	expect_silence(peer);
	assert_int_equal(peer_view(peer).retries_left, before.retries_left);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PEER_TEST(test_retry_count),
		PEER_TEST(test_time_of_the_error),
		PEER_TEST(test_no_timeout),
		PEER_TEST(test_timeout_codes),
		PEER_TEST(test_progress_restarts),
		PEER_TEST(test_idle_has_no_timer),
		PEER_TEST(test_naks_count_as_retries),
		PEER_TEST(test_rnr_timers),
		PEER_TEST(test_rnr_retry),
		PEER_TEST(test_progress_restarts_rnr_retries),
		PEER_TEST(test_rnr_uses_no_retries),
		PEER_TEST(test_rnr_in_the_middle),
		PEER_TEST(test_sequence_nak_keeps_the_rnr_wait),
		PEER_TEST(test_nothing_ends_an_rnr_wait),
		PEER_TEST(test_rnr_behind_a_missing_answer),
		PEER_TEST(test_last_rnr_behind_a_missing_answer),
		PEER_TEST(test_rnr_again_without_expire),
		PEER_TEST(test_unsent_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
