/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What goes with a repair on a network: its sentinel, an ACK solicitation whose answer tells what
 * is missing of all that was sent before it; and a new packet that follows.
 */
#include "dut.h"

#define ROUND_TRIP (400 * US)
/* Packets of DUT_MTU in the smallest limit of a window, which start() has cut to half. */
#define WINDOW 7
#define MORE_THAN_WINDOW 40

/* The next PSN to be acknowledged. */
static uint32_t first;

static uint64_t probes(struct dut *dut)
{
	return dut_view(dut).counters[ENG_COUNT_TAIL_LOSS_PROBES];
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
 * On a network, and the peer has been seen to keep what comes early.  A round trip has been
 * measured, and nothing is under way.
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
	assert_int_equal(dut_view(dut).counters[ENG_COUNT_JUMPS], 1);
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

/* The peer acknowledges again what it has acknowledged. */
static void answer_sentinel(struct dut *dut)
{
	dut_ack(dut, first - 1, ACK_CODE(5), first - DUT_SQ_PSN);
}

/* Four packets under way, and a NAK for the first: a repair and its sentinel. */
static struct dut *repaired(void)
{
	struct dut *dut = start();

	post(dut, 4);
	dut_nak(dut, first, NAK_SEQUENCE, first - DUT_SQ_PSN);
	expect_repair(dut, first);
	expect_sentinel(dut);
	expect_silence(dut);
	return dut;
}

/* rule S4 test: the sentinel is answered and the repair is not, so that is sent again, but once. */
static void test_lost_repair(void **state)
{
	struct dut *dut = repaired();
	uint64_t sent = dut->now;

	(void)state;
	dut_advance(dut, ROUND_TRIP / 2);
	answer_sentinel(dut);
	expect_repair(dut, first);
	expect_silence(dut);
	/* Only a probe will send it again, counted from now. */
	answer_sentinel(dut);
	expect_silence(dut);
	assert_true(eng_deadline(dut->qp) >= sent + ROUND_TRIP / 2 + ROUND_TRIP * 3 / 2);
	dut_advance_to_deadline(dut);
	expect_repair(dut, first);
	expect_silence(dut);
	acknowledge(dut, 4);
	assert_int_equal(eng_in_flight(dut->qp), 0);
	assert_int_equal(dut_view(dut).counters[ENG_COUNT_TIMEOUTS], 0);
}

/* The next packet alone, and nothing is sent for that yet. */
static void acknowledge_next(struct dut *dut)
{
	first++;
	dut_ack(dut, first - 1, ACK_CODE(5), first - DUT_SQ_PSN);
}

/* What a NAK names comes late, and what lies behind it is sent again. */
static void nak_and_late_packet(struct dut *dut)
{
	dut_nak(dut, first, NAK_SEQUENCE, first - DUT_SQ_PSN);
	acknowledge_next(dut);
	expect_repair(dut, first);
	expect_repair(dut, first + 1);
	expect_silence(dut);
}

/*
 * The packet that a NAK names comes late, before its repair has left.  The peer may have dropped
 * what lies behind it, so that is sent again, and does not wait for the timeout.
 */
static void test_late_packet_of_a_nak(void **state)
{
	struct dut *dut = start();

	(void)state;
	post(dut, 4);
	nak_and_late_packet(dut);
}

/* So too when what the NAK names was to be sent again already, since a sentinel's answer said so.
 */
static void test_late_packet_of_a_late_nak(void **state)
{
	struct dut *dut = start();

	(void)state;
	post(dut, 4);
	dut_advance_to_deadline(dut);
	expect_sentinel(dut);
	dut->now += ROUND_TRIP;
	answer_sentinel(dut);
	nak_and_late_packet(dut);
}

/*
 * A probe only supposes a loss: when what it would repeat is acknowledged before it has left, since
 * the transport was full, nothing need be missing behind that, whatever an earlier NAK has told.
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
 * rule S7 test: a thread has read the clock before another one posted, and brings the answer with
 * that time.  That is no round trip of half a thousand years, after which no loss is looked for.
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
	assert_true(eng_deadline(dut->qp) <= dut->now + 2 * ROUND_TRIP);
	dut_advance_to_deadline(dut);
	expect_sentinel(dut);
}

/* What comes as soon as that was under way when the sentinel left. */
static void test_too_soon(void **state)
{
	struct dut *dut = repaired();

	(void)state;
	dut_advance(dut, ROUND_TRIP / 8);
	answer_sentinel(dut);
	expect_silence(dut);
}

/* An older ACK is of a reordering network, or of another request: it answers no sentinel. */
static void test_older_ack(void **state)
{
	struct dut *dut = repaired();

	(void)state;
	dut_advance(dut, ROUND_TRIP / 2);
	dut_ack(dut, first - 2, ACK_CODE(5), first - 1 - DUT_SQ_PSN);
	expect_silence(dut);
}

/* The answer to the repair is lost; that to the sentinel says that all has come. */
static void test_lost_answer(void **state)
{
	struct dut *dut = repaired();

	(void)state;
	acknowledge(dut, 4);
	expect_silence(dut);
	assert_int_equal(eng_in_flight(dut->qp), 0);
}

/* The next gap of the same window: the answer to the first sentinel may still be on its way. */
static void test_no_sentinel_among_duplicates(void **state)
{
	struct dut *dut = repaired();

	(void)state;
	first += 2;
	dut_nak(dut, first, NAK_SEQUENCE, first - DUT_SQ_PSN);
	expect_repair(dut, first);
	expect_silence(dut);
	dut_advance(dut, ROUND_TRIP / 2);
	answer_sentinel(dut);
	expect_silence(dut);
	/* Nor before something has been acknowledged that was sent behind the repairs. */
	acknowledge(dut, 2);
	post(dut, 2);
	dut_nak(dut, first, NAK_SEQUENCE, first - DUT_SQ_PSN);
	expect_repair(dut, first);
	expect_silence(dut);
	acknowledge(dut, 2);
	post(dut, 1);
	acknowledge(dut, 1);
	post(dut, 2);
	dut_nak(dut, first, NAK_SEQUENCE, first - DUT_SQ_PSN);
	expect_repair(dut, first);
	expect_sentinel(dut);
}

/* rule S8: an ACK may be sent ahead of a READ's response. */
static void test_no_sentinel_behind_a_read(void **state)
{
	struct dut *dut = start();

	(void)state;
	dut_post(dut, ENG_READ, 8, ENG_SIGNALED);
	post(dut, 2);
	dut_nak(dut, first, NAK_SEQUENCE, first - DUT_SQ_PSN);
	expect_packet(dut, WIRE_READ_REQUEST, first);
	expect_silence(dut);
}

/* A repair that did not leave takes its sentinel back with it. */
static void test_unsent(void **state)
{
	struct dut *dut = start();
	struct eng_burst burst = dut_empty_burst(dut, 2);

	(void)state;
	post(dut, 4);
	dut_nak(dut, first, NAK_SEQUENCE, first - DUT_SQ_PSN);
	assert_int_equal(dut_transmit(dut, &burst, ENG_REQUESTS), ENG_TX_BURST);
	assert_int_equal(burst.packets, 2);
	eng_unsent(dut->qp, &burst);
	dut_advance(dut, ROUND_TRIP / 2);
	expect_repair(dut, first);
	expect_sentinel(dut);
}

/*
 * A peer of which no more is known than the credits that it tells and the round trip: it does not
 * answer four packets, and a sentinel is sent.
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
	assert_true(dut->now == since + ROUND_TRIP * 3 / 2);
	expect_sentinel(dut);
	expect_silence(dut);
	return dut;
}

/* What is to be repaired is acknowledged before the repair has left: nothing was lost. */
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
 * rule S7 test: the NAK is lost.  In the silence a sentinel is sent first, and what it tells is
 * obeyed as the NAK would have been; when it is lost too, a probe sends the oldest packet.
 */
static void test_lost_nak(void **state)
{
	for (int answered = 0; answered < 2; answered++) {
		struct dut *dut = start();
		uint64_t since = dut->now, before = probes(dut);

		(void)state;
		post(dut, 4);
		dut_advance_to_deadline(dut);
		assert_true(dut->now == since + ROUND_TRIP * 3 / 2);
		expect_sentinel(dut);
		expect_silence(dut);
		if (answered) {
			dut_advance(dut, ROUND_TRIP / 2);
			answer_sentinel(dut);
		} else {
			dut_advance_to_deadline(dut);
			assert_true(dut->now == since + ROUND_TRIP * 3);
		}
		expect_repair(dut, first);
		assert_int_equal(probes(dut) - before, !answered);
		if (!answered)
			dut_teardown(NULL);
	}
}

/* All has come, but its ACKs are lost: nothing is sent again. */
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

/* Packets that fill the window, with more behind them, and a NAK for the first. */
static struct dut *repaired_window(enum eng_op next)
{
	struct dut *dut = start();

	for (unsigned int i = 0; i < MORE_THAN_WINDOW; i++)
		dut_post(dut, i < WINDOW ? ENG_WRITE : next, DUT_MTU, ENG_SIGNALED);
	dut_pull(dut);
	/* A READ goes when there is any room. */
	assert_int_equal(dut->sent_count - dut->sent_read, WINDOW + (next == ENG_READ));
	assert_int_equal(dut->why, ENG_TX_CWND);
	dut_forget(dut);
	dut_nak(dut, first, NAK_SEQUENCE, first - DUT_SQ_PSN);
	expect_repair(dut, first);
	expect_sentinel(dut);
	expect_silence(dut);
	return dut;
}

/* Half a round trip after the NAK a new packet leaves through the closed window, and no other. */
static void test_follower(void **state)
{
	struct dut *dut = repaired_window(ENG_WRITE);

	(void)state;
	dut_advance(dut, ROUND_TRIP / 2 - 1);
	expect_silence(dut);
	assert_true(eng_deadline(dut->qp) == dut->now + 1);
	dut_advance(dut, 1);
	expect_packet(dut, WIRE_WRITE_ONLY, first + WINDOW);
	expect_silence(dut);
	dut_advance(dut, ROUND_TRIP / 2);
	expect_silence(dut);
	acknowledge(dut, WINDOW + 1);
	assert_int_equal(dut_view(dut).counters[ENG_COUNT_TIMEOUTS], 0);
}

/* What a READ asks for is more than a packet: it waits for the window. */
static void test_no_read_follows(void **state)
{
	struct dut *dut = repaired_window(ENG_READ);

	(void)state;
	dut_advance(dut, ROUND_TRIP);
	expect_silence(dut);
}

/* When the repair has been answered, the window alone says what may leave. */
static void test_no_follower_after_the_answer(void **state)
{
	struct dut *dut = repaired_window(ENG_WRITE);

	(void)state;
	first += WINDOW;
	dut_ack(dut, first - 1, ACK_CODE(5), first - DUT_SQ_PSN);
	dut_pull(dut);
	assert_int_equal(dut->why, ENG_TX_CWND);
	dut_forget(dut);
	dut_advance(dut, ROUND_TRIP / 2);
	expect_silence(dut);
}

/*
 * Nothing has been lost for a long time, and then the end of a window is: its sentinels tell how
 * far the peer has got, and then what is missing.
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
	assert_int_equal(dut_view(dut).counters[ENG_COUNT_TIMEOUTS], 0);
}

/* The same at the first loss: a packet is sent again, and all behind it that was not kept. */
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
		assert_int_equal(dut_view(dut).counters[ENG_COUNT_TIMEOUTS], 0);
		if (!kept)
			dut_teardown(NULL);
	}
}

/*
 * The ACKs come that were late, and the sentinel's answer is still on its way behind them: it would
 * be taken for that to the next one.
 */
static void test_late_acks(void **state)
{
	struct dut *dut = start_silent();

	(void)state;
	dut_advance(dut, ROUND_TRIP / 2);
	first += 4;
	answer_sentinel(dut);
	post(dut, 2);
	dut_advance(dut, 4 * ROUND_TRIP);
	expect_silence(dut);
}

/* All of the first window but its first packet, whose ACK has told of the round trip. */
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
	assert_true(dut->now == since + ROUND_TRIP * 3 / 2);
	expect_sentinel(dut);
	expect_silence(dut);
	dut_advance(dut, ROUND_TRIP / 2);
	answer_sentinel(dut);
	expect_repair(dut, first);
	expect_silence(dut);
}

/* A peer that tells no credits is no uroce, as far as is known: it has the timeout. */
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
		DUT_TEST(test_late_packet_of_a_late_nak),
		DUT_TEST(test_late_packet_of_a_probe),
		DUT_TEST(test_clock_of_another_thread),
		DUT_TEST(test_too_soon),
		DUT_TEST(test_older_ack),
		DUT_TEST(test_lost_answer),
		DUT_TEST(test_no_sentinel_among_duplicates),
		DUT_TEST(test_no_sentinel_behind_a_read),
		DUT_TEST(test_unsent),
		DUT_TEST(test_not_needed),
		DUT_TEST(test_lost_nak),
		DUT_TEST(test_lost_acks),
		DUT_TEST(test_lost_tail),
		DUT_TEST(test_first_lost_tail),
		DUT_TEST(test_late_acks),
		DUT_TEST(test_lost_first_window),
		DUT_TEST(test_no_sentinel_for_strangers),
		DUT_TEST(test_follower),
		DUT_TEST(test_no_read_follows),
		DUT_TEST(test_no_follower_after_the_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
