/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Probes of a requester after recent losses. */
#include "dut.h"

/* Local ACK Timeout code 14: 4.096 us x 2^14. */
#define TIMEOUT (UINT64_C(4096) << 14)
#define FIRST_PROBE (300 * US)
/* Maximum interval of the back-off. */
#define LONGEST_WAIT (TIMEOUT / 8)
#define SECOND UINT64_C(1000000000)
/* Code of 64 credits in the AETH */
#define CREDITS_64 12

/* Returns a dut with four packets in flight, all sent again after a sequence NAK of the first. */
static struct dut *after_loss(struct dut_config config, enum eng_op first)
{
	struct dut *dut = dut_unlimited(config);

	dut_post(dut, first, 8, ENG_SIGNALED);
	for (int i = 1; i < 4; i++)
		dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
	dut_forget(dut);
	dut_nak(dut, DUT_SQ_PSN, NAK_SEQUENCE, 0);
	dut_pull(dut);
	assert_int_equal(dut->sent_count - dut->sent_read, 4);
	dut_forget(dut);
	return dut;
}

static uint64_t probes(struct dut *dut)
{
	return dut_info(dut).counters[ENG_COUNT_TAIL_LOSS_PROBES];
}

/*
 * Without an ACK only the oldest packet is sent as a probe, with AckReq, at growing intervals; the
 * timeout stays the same.
 */
static void test_silence_is_probed(void **state)
{
	struct dut *dut = after_loss((struct dut_config){ 0 }, ENG_SEND);
	uint64_t start = dut->now;
	uint32_t retries = dut_info(dut).retries_left, sent = 0;

	(void)state;
	/* rule S10 test */
	for (uint64_t wait = FIRST_PROBE; dut->now + wait < start + TIMEOUT; sent++) {
		assert_true(eng_deadline(dut->qp) == dut->now + wait);
		dut_advance(dut, wait - 1);
		expect_silence(dut);
		dut_advance(dut, 1);
		assert_true(expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN)->ack_request);
		expect_silence(dut);
		wait = 2 * wait < LONGEST_WAIT ? 2 * wait : LONGEST_WAIT;
	}
	assert_true(sent > 8);
	assert_int_equal(probes(dut), sent);
	assert_int_equal(dut_info(dut).retries_left, retries);
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_TIMEOUTS], 0);
	assert_true(eng_deadline(dut->qp) == start + TIMEOUT);
	dut_advance_to_deadline(dut);
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_TIMEOUTS], 1);
	assert_int_equal(dut_info(dut).retries_left, retries - 1);
	assert_int_equal(dut->sent_count - dut->sent_read, 4);
	/* No more probes until the next timeout. */
	assert_true(eng_deadline(dut->qp) == dut->now + TIMEOUT);
}

/* On a path that is known to lose packets the first lost packet is probed, also after a retry. */
static void test_lossy_path(void **state)
{
	for (int lossy = 0; lossy < 2; lossy++) {
		struct dut *dut = dut_unlimited((struct dut_config){ 0 });
		uint64_t start;

		(void)state;
		/* rule S10 test */
		eng_set_path_loss(dut->qp, lossy ? ENG_PATH_LOSSY : ENG_PATH_USUAL);
		for (uint32_t retries = 0; retries < 2; retries++) {
			if (retries == 0)
				dut_post(dut, ENG_SEND, 8, ENG_SIGNALED);
			dut_forget(dut);
			start = dut->now;
			dut_advance_to_deadline(dut);
			assert_true(dut->now == start + (lossy ? FIRST_PROBE : TIMEOUT));
			assert_true(expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN)->ack_request);
			dut_advance(dut, start + TIMEOUT - dut->now);
			assert_int_equal(dut_info(dut).counters[ENG_COUNT_TIMEOUTS], retries + 1);
		}
		assert_true(lossy ? probes(dut) > 16 : probes(dut) == 0);
		dut_teardown(NULL);
	}
}

/* Returns a QP with a measured round trip and one packet without AckReq in flight. */
static struct dut *without_ack_request(enum eng_path_loss path, uint8_t credits)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });

	eng_set_path_loss(dut->qp, path);
	dut_ack(dut, DUT_SQ_PSN - 1, credits, 0);
	dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
	dut_pull(dut);
	dut->now += 100 * US;
	dut_ack(dut, DUT_SQ_PSN, credits, 1);
	dut_post(dut, ENG_WRITE, 8, 0);
	dut_pull(dut);
	dut_forget(dut);
	return dut;
}

/*
 * The response to an ACK probe acknowledges nothing new: on a path that is known to lose packets
 * the packet is lost, with and without credits of the peer.
 */
static void test_ack_probe_on_a_lossy_path(void **state)
{
	static const uint8_t codes[] = { CREDITS_64, NO_CREDITS_REPORTED };

	(void)state;
	/* rule S4 test */
	for (int i = 0; i < 4; i++) {
		uint8_t credits = codes[i / 2];
		bool lossy = i % 2;
		struct dut *dut =
			without_ack_request(lossy ? ENG_PATH_LOSSY : ENG_PATH_USUAL, credits);

		dut_advance_to_deadline(dut);
		assert_int_equal(expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN)->payload_length, 0);
		dut_ack(dut, DUT_SQ_PSN, credits, 1);
		dut_pull(dut);
		if (lossy)
			assert_true(
				expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN + 1)->ack_request);
		expect_silence(dut);
		assert_int_equal(dut_info(dut).counters[ENG_COUNT_TIMEOUTS], 0);
		dut_teardown(NULL);
	}
}

/*
 * A NAK for a packet that was sent again after a NAK and then as a probe has no effect: each READ
 * response that was in flight is an implied NAK.
 */
static void test_nak_behind_a_probe(void **state)
{
	struct dut *dut = after_loss((struct dut_config){ 0 }, ENG_SEND);
	uint32_t retries = dut_info(dut).retries_left;

	(void)state;
	/* rule S10 test */
	for (int i = 0; i < 10; i++) {
		dut_advance_to_deadline(dut);
		assert_int_equal(probes(dut), i + 1);
		expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN);
		dut_nak(dut, DUT_SQ_PSN, NAK_SEQUENCE, 0);
		expect_silence(dut);
		assert_int_equal(dut_info(dut).retries_left, retries);
	}
	/* This is the first NAK for the next packet, so it has an effect. */
	dut_nak(dut, DUT_SQ_PSN + 1, NAK_SEQUENCE, 1);
	dut_pull(dut);
	assert_int_equal(dut->sent_count - dut->sent_read, 3);
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_COMPLETER_RETRY], 2);
}

/* The peer had received all packets, and its ACK was lost: no other packet is sent again. */
static void test_answer_of_who_has_all(void **state)
{
	struct dut *dut = after_loss((struct dut_config){ 0 }, ENG_SEND);

	(void)state;
	/* rule S7 test, rule S9 test */
	dut_advance_to_deadline(dut);
	expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN);
	dut_ack(dut, DUT_SQ_PSN + 3, NO_CREDITS_REPORTED, 4);
	dut_pull(dut);
	expect_silence(dut);
	assert_int_equal(dut->wc_count, 4);
	assert_true(eng_deadline(dut->qp) == ENG_NEVER);
}

/* The peer had missed the oldest packet and dropped all later ones, which are sent again. */
static void test_answer_of_who_missed_the_oldest(void **state)
{
	struct dut *dut = after_loss((struct dut_config){ 0 }, ENG_SEND);

	(void)state;
	/* rule S4 test, rule S10 test */
	dut_advance_to_deadline(dut);
	expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN);
	dut_ack(dut, DUT_SQ_PSN, NO_CREDITS_REPORTED, 1);
	dut_pull(dut);
	for (uint32_t i = 1; i < 4; i++)
		expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN + i);
	expect_silence(dut);
	assert_int_equal(probes(dut), 1);
	/* The probe may have been too early: the interval stays until a round trip is measured. */
	assert_true(eng_deadline(dut->qp) == dut->now + 2 * FIRST_PROBE);
	dut_ack(dut, DUT_SQ_PSN + 1, NO_CREDITS_REPORTED, 2);
	assert_true(eng_deadline(dut->qp) == dut->now + 2 * FIRST_PROBE);
	dut->now += MS;
	dut_ack(dut, DUT_SQ_PSN + 3, NO_CREDITS_REPORTED, 4);
	dut_post(dut, ENG_SEND, 8, ENG_SIGNALED);
	dut_pull(dut);
	assert_true(eng_deadline(dut->qp) == dut->now + 2 * FIRST_PROBE);
	/* Only packets that were sent once are measured; the first sample counts three times. */
	dut->now += 500 * US;
	dut_ack(dut, DUT_SQ_PSN + 4, NO_CREDITS_REPORTED, 5);
	dut_post(dut, ENG_SEND, 8, ENG_SIGNALED);
	dut_pull(dut);
	assert_true(eng_deadline(dut->qp) == dut->now + 3 * 500 * US);
}

/* However many probes get no response, the interval leaves time for more before the timeout. */
static void test_interval_is_bounded(void **state)
{
	struct dut *dut = after_loss((struct dut_config){ 0 }, ENG_SEND);

	(void)state;
	/* rule S10 test */
	for (uint32_t i = 0; i < 3; i++) {
		for (int probe = 0; probe < 3; probe++) {
			dut_advance_to_deadline(dut);
			expect_packet(dut, i ? WIRE_WRITE_ONLY : WIRE_SEND_ONLY, DUT_SQ_PSN + i);
		}
		dut_ack(dut, DUT_SQ_PSN + i, NO_CREDITS_REPORTED, i + 1);
		dut_pull(dut);
		dut_forget(dut);
		assert_true(eng_deadline(dut->qp) <= dut->now + TIMEOUT / 8);
	}
}

/*
 * On a path that is known to lose packets, progress halves the interval, since with many losses no
 * round trip may be measured.
 */
static void test_back_off_on_a_lossy_path(void **state)
{
	for (int lossy = 0; lossy < 2; lossy++) {
		struct dut *dut = after_loss((struct dut_config){ 0 }, ENG_SEND);

		(void)state;
		/* rule S10 test */
		eng_set_path_loss(dut->qp, lossy ? ENG_PATH_LOSSY : ENG_PATH_USUAL);
		for (int probe = 0; probe < 3; probe++)
			dut_advance_to_deadline(dut);
		for (uint32_t i = 0; i < 3; i++) {
			dut_ack(dut, DUT_SQ_PSN + i, NO_CREDITS_REPORTED, i + 1);
			dut_pull(dut);
			assert_true(eng_deadline(dut->qp) ==
				    dut->now + (lossy ? 4 >> i : 8) * FIRST_PROBE);
		}
		dut_teardown(NULL);
	}
}

/* After a NAK all packets from its PSN on are sent again, not only one as for a probe. */
static void test_nak_ends_a_probe(void **state)
{
	struct dut *dut = after_loss((struct dut_config){ 0 }, ENG_SEND);

	(void)state;
	/* rule S11 test */
	dut_advance_to_deadline(dut);
	expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN);
	dut_nak(dut, DUT_SQ_PSN + 2, NAK_SEQUENCE, 2);
	dut_pull(dut);
	expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN + 2);
	expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN + 3);
	expect_silence(dut);
}

/*
 * The wait is the mean round trip and four times its deviation, which is half of the first sample,
 * and loses a quarter with each like it (RFC 9002, section 5.3).  Packets without AckReq are not
 * timed: their ACK may come much later.
 */
static void test_long_round_trips(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });

	(void)state;
	/* rule S10 test */
	dut_ack(dut, DUT_SQ_PSN - 1, NO_CREDITS_REPORTED, 0);
	for (uint32_t i = 0; i < 4; i++) {
		dut_post(dut, ENG_WRITE, 8, i < 2 ? ENG_SIGNALED : 0);
		dut_pull(dut);
		dut->now += (i < 2 ? 2 : 20) * MS;
		dut_ack(dut, DUT_SQ_PSN + i, NO_CREDITS_REPORTED, i + 1);
	}
	dut_post(dut, ENG_WRITE, 8, 0);
	dut_pull(dut);
	dut_nak(dut, DUT_SQ_PSN + 4, NAK_SEQUENCE, 4);
	dut_pull(dut);
	assert_true(eng_deadline(dut->qp) == dut->now + 2 * MS + 4 * MS * 3 / 4);
}

/*
 * An ACK was lost, and a later one arrives just before the timeout: the measured round trip is that
 * long.  The probe for the packets in flight after it is still sent before the timeout.
 */
static void test_a_late_ack_leaves_probes(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });

	(void)state;
	/* rule S10 test */
	dut_ack(dut, DUT_SQ_PSN - 1, NO_CREDITS_REPORTED, 0);
	dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
	dut_post(dut, ENG_WRITE, 8, 0);
	dut_pull(dut);
	dut_forget(dut);
	dut->now += TIMEOUT - US;
	dut_ack(dut, DUT_SQ_PSN, NO_CREDITS_REPORTED, 1);
	assert_true(eng_deadline(dut->qp) == dut->now + TIMEOUT / 2);
	dut_advance_to_deadline(dut);
	assert_true(expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN)->ack_request);
	expect_silence(dut);
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_TIMEOUTS], 0);
}

/* If the oldest packet is a READ request, that is sent again as a probe. */
static void test_read_is_probed(void **state)
{
	struct dut *dut = after_loss((struct dut_config){ 0 }, ENG_READ);

	(void)state;
	/* rule S10 test */
	assert_true(eng_deadline(dut->qp) == dut->now + FIRST_PROBE);
	dut_advance_to_deadline(dut);
	expect_packet(dut, WIRE_READ_REQUEST, DUT_SQ_PSN);
	expect_silence(dut);
	assert_int_equal(probes(dut), 1);
	assert_true(eng_deadline(dut->qp) == dut->now + 2 * FIRST_PROBE);
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_TIMEOUTS], 0);
}

/* No probes without retries, or one second after the last loss. */
static void test_not_probed(void **state)
{
	struct dut *dut;

	(void)state;
	/* rule S10 test */
	dut = dut_rts((struct dut_config){ .retry_count = DUT_NO_RETRY });
	dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
	dut_pull(dut);
	assert_true(eng_deadline(dut->qp) == dut->now + TIMEOUT);
	dut_teardown(NULL);

	dut = after_loss((struct dut_config){ 0 }, ENG_SEND);
	dut_ack(dut, DUT_SQ_PSN + 3, NO_CREDITS_REPORTED, 4);
	dut->now += SECOND - 1;
	dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
	dut_pull(dut);
	assert_true(eng_deadline(dut->qp) == dut->now + FIRST_PROBE);
	dut_ack(dut, DUT_SQ_PSN + 4, NO_CREDITS_REPORTED, 5);
	dut->now += 1;
	dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
	dut_pull(dut);
	assert_true(eng_deadline(dut->qp) == dut->now + TIMEOUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DUT_TEST(test_silence_is_probed),
		DUT_TEST(test_lossy_path),
		DUT_TEST(test_ack_probe_on_a_lossy_path),
		DUT_TEST(test_nak_behind_a_probe),
		DUT_TEST(test_answer_of_who_has_all),
		DUT_TEST(test_answer_of_who_missed_the_oldest),
		DUT_TEST(test_interval_is_bounded),
		DUT_TEST(test_back_off_on_a_lossy_path),
		DUT_TEST(test_nak_ends_a_probe),
		DUT_TEST(test_long_round_trips),
		DUT_TEST(test_a_late_ack_leaves_probes),
		DUT_TEST(test_read_is_probed),
		DUT_TEST(test_not_probed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
