/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Retransmission on a network, where the first probe is an ACK probe: its response shows which of
 * the packets sent before it are missing.
 */
#include "dut.h"

#define ROUND_TRIP (400 * US)
/* Probe timeouts after 1 to 3 samples of ROUND_TRIP; the deviation starts with half (RFC 9002). */
#define PTO_1 (ROUND_TRIP + 4 * ROUND_TRIP / 2)
#define PTO_2 (ROUND_TRIP + 4 * ROUND_TRIP * 3 / 8)
#define PTO_3 (ROUND_TRIP + 4 * ROUND_TRIP * 9 / 32)

/* The next PSN to be acknowledged. */
static uint32_t first;

static uint64_t probes(struct dut *dut)
{
	return dut_info(dut).counters[ENG_COUNT_TAIL_LOSS_PROBES];
}

static void post(struct dut *dut, unsigned int packets)
{
	for (unsigned int i = 0; i < packets; i++)
		dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
	dut_pull(dut);
	dut_forget(dut);
}

static void acknowledge(struct dut *dut, unsigned int packets)
{
	dut_advance(dut, ROUND_TRIP);
	first += packets;
	dut_ack(dut, first - 1, ACK_CODE(5), first - DUT_SQ_PSN);
	dut_pull(dut);
	dut_forget(dut);
}

/*
 * Returns a dut on a network whose peer is known to keep out-of-order packets.  The round trip has
 * been measured, and nothing is in flight.
 */
static struct dut *start(void)
{
	struct dut *dut = dut_rts((struct dut_config){ .network = true, .cwnd = 1 });

	first = DUT_SQ_PSN;
	post(dut, 1);
	acknowledge(dut, 1);
	post(dut, 3);
	dut_nak(dut, first, NAK_SEQUENCE, 1);
	dut_pull(dut);
	acknowledge(dut, 3);
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_ACKS_PAST_HOLE], 1);
	for (unsigned int i = 0; i < 2; i++) {
		post(dut, 1);
		acknowledge(dut, 1);
	}
	return dut;
}

static void expect_repair(struct dut *dut, uint32_t psn)
{
	assert_true(expect_packet(dut, WIRE_WRITE_ONLY, psn)->ack_request);
}

static void expect_sentinel(struct dut *dut)
{
	const struct wire_packet *packet = expect_packet(dut, WIRE_SEND_ONLY, first - 1);

	assert_int_equal(packet->payload_length, 0);
	assert_true(packet->ack_request);
}

/* The peer responds to the ACK probe: it acknowledges the packets before first. */
static void answer_sentinel(struct dut *dut)
{
	dut_ack(dut, first - 1, ACK_CODE(5), first - DUT_SQ_PSN);
}

/* Returns a dut with four packets in flight, the first of which is retransmitted after a NAK. */
static struct dut *repaired(void)
{
	struct dut *dut = start();

	post(dut, 4);
	dut_nak(dut, first, NAK_SEQUENCE, first - DUT_SQ_PSN);
	expect_repair(dut, first);
	expect_silence(dut);
	return dut;
}

/* A retransmission or its ACK is lost: a probe repeats it, and again after twice that time. */
static void test_lost_repair(void **state)
{
	struct dut *dut = repaired();
	uint64_t sent = dut->now, before = probes(dut);

	(void)state;
	for (uint64_t at = PTO_3; at <= 3 * PTO_3; at += 2 * PTO_3) {
		assert_true(eng_deadline(dut->qp) == sent + at);
		dut_advance_to_deadline(dut);
		expect_repair(dut, first);
		expect_silence(dut);
	}
	assert_int_equal(probes(dut) - before, 2);
	acknowledge(dut, 4);
	assert_int_equal(eng_in_flight(dut->qp), 0);
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_TIMEOUTS], 0);
}

/* Acknowledges the next packet alone; takes no packets from the engine yet. */
static void acknowledge_next(struct dut *dut)
{
	first++;
	dut_ack(dut, first - 1, ACK_CODE(5), first - DUT_SQ_PSN);
}

/*
 * The packet of a NAK was only late and is acknowledged before it is retransmitted: nothing is sent
 * since maybe no other packet is missing.  If the peer has dropped those after it, a probe detects
 * that.
 */
static void test_late_packet_of_a_nak(void **state)
{
	struct dut *dut = start();

	(void)state;
	post(dut, 4);
	dut_nak(dut, first, NAK_SEQUENCE, first - DUT_SQ_PSN);
	acknowledge_next(dut);
	expect_silence(dut);
	dut_advance_to_deadline(dut);
	/* That packet has been acknowledged alone, so twice as many are sent. */
	expect_repair(dut, first);
	expect_repair(dut, first + 1);
	expect_silence(dut);
}

/*
 * A probe only assumes a loss: if the packet that it would repeat is acknowledged before the probe
 * is sent, since the transport was full, nothing is sent.  Maybe no later packet is missing,
 * whatever an earlier NAK has shown.
 */
static void test_late_packet_of_a_probe(void **state)
{
	struct dut *dut = start();

	(void)state;
	post(dut, 4);
	dut_advance_to_deadline(dut);
	expect_sentinel(dut);
	dut->now = eng_deadline(dut->qp);
	eng_expire(dut->qp, dut->now);
	assert_int_equal(probes(dut), 1);
	dut->now += ROUND_TRIP;
	acknowledge_next(dut);
	expect_silence(dut);
}

/*
 * rule S7 test: a thread has read the clock before another one posted, and passes in the ACK with
 * that time.  The negative difference must not count as a round trip of 500 years, after which
 * there would be no probes.
 */
static void test_clock_of_another_thread(void **state)
{
	struct dut *dut = start();

	(void)state;
	post(dut, 1);
	dut->now -= US;
	acknowledge_next(dut);
	dut->now += US;
	post(dut, 4);
	assert_true(eng_deadline(dut->qp) <= dut->now + PTO_1);
	dut_advance_to_deadline(dut);
	expect_sentinel(dut);
}

/* An older ACK was reordered, or is of another request: it is not the response to an ACK probe. */
static void test_older_ack(void **state)
{
	struct dut *dut = start();

	(void)state;
	post(dut, 4);
	dut_advance_to_deadline(dut);
	expect_sentinel(dut);
	dut_ack(dut, first - 2, ACK_CODE(5), first - 1 - DUT_SQ_PSN);
	expect_silence(dut);
}

/*
 * After a retransmission an ACK of it may still arrive, and be taken for the response to a later
 * ACK probe.  So until a packet sent after it has been acknowledged, a probe repeats a packet.
 */
static void test_no_sentinel_among_duplicates(void **state)
{
	struct dut *dut = repaired();

	(void)state;
	acknowledge(dut, 4);
	post(dut, 2);
	dut_advance_to_deadline(dut);
	expect_repair(dut, first);
	expect_silence(dut);
	acknowledge(dut, 2);
	post(dut, 1);
	acknowledge(dut, 1);
	post(dut, 2);
	dut_advance_to_deadline(dut);
	expect_sentinel(dut);
	expect_silence(dut);
}

/* A retransmission that could not be sent is sent later. */
static void test_unsent(void **state)
{
	struct dut *dut = start();
	struct eng_burst burst = dut_empty_burst(dut, 2);

	(void)state;
	post(dut, 4);
	dut_nak(dut, first, NAK_SEQUENCE, first - DUT_SQ_PSN);
	assert_int_equal(dut_transmit(dut, &burst, ENG_REQUESTS), ENG_TX_BURST);
	assert_int_equal(burst.packets, 1);
	eng_tx_rollback(dut->qp, &burst);
	expect_repair(dut, first);
	expect_silence(dut);
}

/*
 * Returns a dut with a peer of which only credits and the round trip are known: it acknowledges
 * none of four packets, and an ACK probe is sent.
 */
static struct dut *start_silent(void)
{
	struct dut *dut = dut_rts((struct dut_config){ .network = true });
	uint64_t since;

	first = DUT_SQ_PSN;
	for (unsigned int i = 0; i < 2; i++) {
		post(dut, 1);
		acknowledge(dut, 1);
	}
	since = dut->now;
	post(dut, 4);
	dut_advance_to_deadline(dut);
	assert_true(dut->now == since + PTO_2);
	expect_sentinel(dut);
	expect_silence(dut);
	return dut;
}

/* The missing packets are acknowledged before the retransmission is sent: nothing was lost. */
static void test_not_needed(void **state)
{
	struct dut *dut = start_silent();

	(void)state;
	dut_advance(dut, ROUND_TRIP / 2);
	answer_sentinel(dut);
	first++;
	answer_sentinel(dut);
	expect_silence(dut);
	assert_int_equal(eng_in_flight(dut->qp), 3);
}

/*
 * rule S7 test: the NAK is lost.  An ACK probe is sent first, and its response has the effect of
 * the NAK; if the probe is lost too, the next one sends the oldest packet.
 */
static void test_lost_nak(void **state)
{
	for (int answered = 0; answered < 2; answered++) {
		struct dut *dut = start();
		uint64_t since = dut->now, before = probes(dut);

		(void)state;
		post(dut, 4);
		dut_advance_to_deadline(dut);
		assert_true(dut->now == since + PTO_3);
		expect_sentinel(dut);
		expect_silence(dut);
		if (answered) {
			dut_advance(dut, ROUND_TRIP / 2);
			answer_sentinel(dut);
		} else {
			dut_advance_to_deadline(dut);
			assert_true(dut->now == since + 3 * PTO_3);
		}
		expect_repair(dut, first);
		assert_int_equal(probes(dut) - before, !answered);
		if (!answered)
			dut_teardown(NULL);
	}
}

/* All packets have arrived, but their ACKs are lost: no packet is sent again. */
static void test_lost_acks(void **state)
{
	struct dut *dut = start();

	(void)state;
	post(dut, 4);
	dut_advance_to_deadline(dut);
	expect_sentinel(dut);
	first += 4;
	answer_sentinel(dut);
	expect_silence(dut);
	assert_int_equal(eng_in_flight(dut->qp), 0);
}

/*
 * After a long time without losses the last packets of a window are lost: the response to an ACK
 * probe shows which have arrived, and that to the next one which are missing.
 */
static void test_lost_tail(void **state)
{
	struct dut *dut = start();

	(void)state;
	dut_advance(dut, 2000 * MS);
	post(dut, 4);
	dut_advance_to_deadline(dut);
	expect_sentinel(dut);
	dut_advance(dut, ROUND_TRIP / 2);
	first += 2;
	answer_sentinel(dut);
	expect_silence(dut);
	dut_advance_to_deadline(dut);
	expect_sentinel(dut);
	expect_silence(dut);
	dut_advance(dut, ROUND_TRIP / 2);
	answer_sentinel(dut);
	expect_repair(dut, first);
	acknowledge(dut, 2);
	assert_int_equal(eng_in_flight(dut->qp), 0);
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_TIMEOUTS], 0);
}

/*
 * The last packets are lost, and it is the first loss: one packet is sent again, and those after it
 * if the peer has not kept them.
 */
static void test_first_lost_tail(void **state)
{
	for (int kept = 0; kept < 2; kept++) {
		struct dut *dut = start_silent();

		(void)state;
		/* The queue that made the round trips long is empty by now. */
		dut_advance(dut, ROUND_TRIP / 8);
		answer_sentinel(dut);
		expect_repair(dut, first);
		expect_silence(dut);
		dut_advance(dut, ROUND_TRIP);
		first += kept ? 4 : 1;
		answer_sentinel(dut);
		for (uint32_t i = 0; !kept && i < 3; i++)
			expect_packet(dut, WIRE_WRITE_ONLY, first + i);
		expect_silence(dut);
		assert_int_equal(dut_info(dut).counters[ENG_COUNT_TIMEOUTS], 0);
		if (!kept)
			dut_teardown(NULL);
	}
}

/*
 * Late ACKs arrive, and the response to the ACK probe is still in flight after them: it would be
 * taken for the response to the next ACK probe, so a packet is sent again instead.
 */
static void test_late_acks(void **state)
{
	struct dut *dut = start_silent();

	(void)state;
	dut_advance(dut, ROUND_TRIP / 2);
	first += 4;
	answer_sentinel(dut);
	post(dut, 2);
	dut_advance_to_deadline(dut);
	expect_repair(dut, first);
	expect_silence(dut);
}

/* All packets of the first window are lost but the first, whose ACK has shown the round trip. */
static void test_lost_first_window(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .network = true });
	uint64_t since;

	(void)state;
	first = DUT_SQ_PSN;
	post(dut, 4);
	acknowledge(dut, 1);
	since = dut->now;
	dut_advance_to_deadline(dut);
	assert_true(dut->now == since + PTO_1);
	expect_sentinel(dut);
	expect_silence(dut);
	dut_advance(dut, ROUND_TRIP / 2);
	answer_sentinel(dut);
	expect_repair(dut, first);
	expect_silence(dut);
}

/* A peer that reports no credits may not be uroce: there is only the timeout. */
static void test_no_sentinel_for_strangers(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .network = true });
	uint64_t since;

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		post(dut, 1);
		dut_advance(dut, ROUND_TRIP);
		dut_ack(dut, DUT_SQ_PSN + i, NO_CREDITS_REPORTED, i + 1);
	}
	since = dut->now;
	post(dut, 4);
	dut_advance_to_deadline(dut);
	assert_true(dut->now == since + (UINT64_C(4096) << 14));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DUT_TEST(test_lost_repair),
		DUT_TEST(test_late_packet_of_a_nak),
		DUT_TEST(test_late_packet_of_a_probe),
		DUT_TEST(test_clock_of_another_thread),
		DUT_TEST(test_older_ack),
		DUT_TEST(test_no_sentinel_among_duplicates),
		DUT_TEST(test_unsent),
		DUT_TEST(test_not_needed),
		DUT_TEST(test_lost_nak),
		DUT_TEST(test_lost_acks),
		DUT_TEST(test_lost_tail),
		DUT_TEST(test_first_lost_tail),
		DUT_TEST(test_late_acks),
		DUT_TEST(test_lost_first_window),
		DUT_TEST(test_no_sentinel_for_strangers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
