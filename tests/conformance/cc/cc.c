/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* The window on a network: what it begins with, what cuts it and how far, and how it comes back. */
#include "dut.h"

#define MESSAGES 2000

static struct dut *sending(bool ecn)
{
	struct dut *dut = dut_rts((struct dut_config){
		.network = true, .ecn = ecn, .cwnd = 512, .sq_slots = 4096, .mtu = 4096 });

	dut_ack(dut, DUT_SQ_PSN - 1, NO_CREDITS_REPORTED, 0);
	for (int i = 0; i < MESSAGES; i++)
		dut_post(dut, ENG_WRITE, DUT_REGION_BYTES, 0);
	dut_pull(dut);
	return dut;
}

static void give_cnp(struct dut *dut)
{
	struct wire_packet packet = dut_packet(dut, WIRE_CNP_OPCODE, 0);

	packet.congestion = WIRE_BECN;
	dut_give(dut, &packet);
}

/* The oldest count packets are acknowledged, those from the first marked one on with BECN. */
static void acknowledge(struct dut *dut, uint32_t count, uint32_t marked_from)
{
	uint32_t first = dut_info(dut).unacked_psn;

	for (uint32_t i = 0; i < count; i++) {
		struct wire_packet ack = dut_packet(dut, WIRE_ACKNOWLEDGE, first + i);

		ack.syndrome = NO_CREDITS_REPORTED;
		ack.msn = (first + i + 1 - DUT_SQ_PSN) / 16;
		ack.congestion = i >= marked_from ? WIRE_BECN : 0;
		dut_give(dut, &ack);
		dut_begin_log(dut);
	}
}

/* A round trip: what is under way is acknowledged; how many packets that were. */
static uint32_t round_trip(struct dut *dut, uint32_t marked_from)
{
	uint32_t count = eng_in_flight(dut->qp);

	acknowledge(dut, count, marked_from);
	return count;
}

/* ECT begins with few packets and doubles; without, a window is what it always was. */
static void test_start(void **state)
{
	struct dut *dut = sending(true);

	(void)state;
	assert_uint_in_range(eng_in_flight(dut->qp), 15, 16);
	round_trip(dut, UINT32_MAX);
	assert_uint_in_range(eng_in_flight(dut->qp), 28, 32);
	assert_uint_in_range(eng_in_flight(sending(false)->qp), 85, 90);
}

/* So that a small window moves on with each packet: each has AckReq. */
static void test_clocked(void **state)
{
	struct dut *dut = sending(true);

	(void)state;
	for (unsigned int i = 0; i < dut->sent_count; i++)
		assert_true(dut->sent[i].packet.ack_request);
}

/* A CNP takes a fifth, however many come, once in a round trip; and never the last two packets. */
static void test_cnps(void **state)
{
	struct dut *dut = sending(true);
	uint32_t before = dut_info(dut).cwnd;

	(void)state;
	for (int i = 0; i < 100; i++)
		give_cnp(dut);
	assert_uint_in_range(dut_info(dut).cwnd, before * 4 / 5 - 1, before * 4 / 5 + 1);
	for (int trip = 0; trip < 30; trip++) {
		round_trip(dut, UINT32_MAX);
		for (int i = 0; i < 100; i++)
			give_cnp(dut);
	}
	assert_uint_in_range(eng_in_flight(dut->qp), 2, 3);
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_CNP_HANDLED], 3100);
	/* Growth is by a packet in a round trip. */
	for (int trip = 0; trip < 10; trip++)
		round_trip(dut, UINT32_MAX);
	assert_uint_in_range(eng_in_flight(dut->qp), 9, 13);
}

/*
 * Marks that ACKs echo cut by what part of the packets had them, and the first one by half; CNPs
 * are then for something else.
 */
static void test_marks(void **state)
{
	struct dut *dut = sending(true);
	uint32_t cwnd;

	(void)state;
	round_trip(dut, 8);
	assert_uint_in_range(dut_info(dut).cwnd, 11, 13);
	/* Without marks it grows by a packet per round trip, and alpha decays. */
	for (int trip = 0; trip < 100; trip++)
		round_trip(dut, UINT32_MAX);
	cwnd = eng_in_flight(dut->qp);
	assert_uint_in_range(cwnd, 90, 130);
	give_cnp(dut);
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_CNP_IGNORED], 1);
	/* One mark after so many without any takes almost nothing. */
	round_trip(dut, cwnd - 1);
	round_trip(dut, UINT32_MAX);
	assert_uint_in_range(eng_in_flight(dut->qp), cwnd - 8, cwnd + 2);
	/* All of it marked, again and again: two packets are left. */
	for (int trip = 0; trip < 100; trip++)
		round_trip(dut, 0);
	assert_uint_in_range(eng_in_flight(dut->qp), 2, 2);
}

/* A loss takes half, once for the packets that were under way. */
static void test_loss(void **state)
{
	struct dut *dut = sending(false);
	uint32_t before = dut_info(dut).cwnd;

	(void)state;
	dut_nak(dut, DUT_SQ_PSN + 3, NAK_SEQUENCE, 3);
	dut_nak(dut, DUT_SQ_PSN + 4, NAK_SEQUENCE, 4);
	assert_uint_in_range(dut_info(dut).cwnd, before / 2 - 1, before / 2 + 1);
}

/* When what was sent again is lost as well, so that only a probe finds out, it is half again. */
static void test_lost_again(void **state)
{
	struct dut *dut = sending(false);
	uint32_t before = dut_info(dut).cwnd;

	(void)state;
	dut->now += MS;
	dut_nak(dut, DUT_SQ_PSN + 3, NAK_SEQUENCE, 0);
	dut_pull(dut);
	while (dut_info(dut).counters[ENG_COUNT_TAIL_LOSS_PROBES] == 0)
		assert_true(dut_advance_to_deadline(dut));
	assert_uint_in_range(dut_info(dut).cwnd, before / 4 - 1, before / 4 + 1);
}

/* READ requests that leave at once, of more than a window's. */
static uint32_t reads_at_once(bool network)
{
	struct dut *dut = dut_rts((struct dut_config){
		.network = network, .sq_slots = 64, .mtu = 4096, .max_rd_atomic = 64 });

	dut_ack(dut, DUT_SQ_PSN - 1, NO_CREDITS_REPORTED, 0);
	for (int i = 0; i < 64; i++)
		dut_post(dut, ENG_READ, DUT_REGION_BYTES, 0);
	dut_pull(dut);
	return dut->sent_count;
}

/*
 * On a network READs are a window of their responses; the next one goes when less is under way, as
 * it cannot go in parts.  On a host they are a quarter of that.
 */
static void test_reads(void **state)
{
	const uint32_t window = 90, packets = DUT_REGION_BYTES / 4096;

	(void)state;
	assert_int_equal(reads_at_once(true), (window + packets - 1) / packets);
	assert_int_equal(reads_at_once(false), 4 * window / packets);
}

/* Bytes of READ responses that leave in a time, if nothing holds them up but their pace. */
static uint64_t answered(struct dut *dut, uint64_t ns)
{
	uint64_t before = dut_info(dut).counters[ENG_COUNT_SENT_BYTES], until = dut->now + ns;

	while (dut->now < until) {
		struct eng_burst burst = dut_empty_burst(dut, DUT_BURST_PACKETS);

		if (dut_transmit(dut, &burst, ENG_RESPONSES) != ENG_TX_BURST)
			dut->now += 10 * US;
	}
	return dut_info(dut).counters[ENG_COUNT_SENT_BYTES] - before;
}

/* READ responses have no ACKs: CNPs cut their pace, and it comes back when there are none. */
static void test_read_responses(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .network = true, .ecn = true, .mtu = 4096 });
	uint64_t first, least = UINT64_MAX;

	(void)state;
	dut_region_add(dut, DUT_RKEY + 1, DUT_REMOTE_VA << 1, 1u << 30, ENG_REMOTE_READ);
	for (int i = 0; i < 4; i++) {
		struct wire_packet packet =
			dut_packet(dut, WIRE_READ_REQUEST, DUT_RQ_PSN + i * ((1u << 29) / 4096));

		packet.va = DUT_REMOTE_VA << 1;
		packet.rkey = DUT_RKEY + 1;
		packet.dma_length = 1u << 29;
		dut_give(dut, &packet);
	}
	first = answered(dut, MS);
	assert_uint_in_range(first, 2 * 4096, 64 * 1024);
	/* Doubled until the first one. */
	assert_true(answered(dut, 2 * MS) > 2 * first);
	for (int i = 0; i < 40; i++) {
		give_cnp(dut);
		least = answered(dut, MS);
	}
	assert_true(least <= 3 * 4200);
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_CNP_HANDLED], 40);
	assert_true(answered(dut, 200 * MS) > 1000000);
}

/* On a host CNPs mean nothing: nothing there sends any. */
static void test_host(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .cwnd = 64 });
	uint32_t before = dut_info(dut).cwnd;

	(void)state;
	give_cnp(dut);
	assert_int_equal(dut_info(dut).cwnd, before);
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_CNP_IGNORED], 1);
}

/* A new path in SQD may lead through a network: the window begins as one there does. */
static void test_new_path(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .ecn = true });

	(void)state;
	assert_true(dut_info(dut).cwnd > 16);
	dut_set_state(dut, ENG_SQD);
	eng_set_cc(dut->qp, ENG_CC_NETWORK);
	dut_set_state(dut, ENG_RTS);
	assert_uint_in_range(dut_info(dut).cwnd, 2, 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DUT_TEST(test_start),	   DUT_TEST(test_clocked),	  DUT_TEST(test_cnps),
		DUT_TEST(test_marks),	   DUT_TEST(test_loss),		  DUT_TEST(test_host),
		DUT_TEST(test_lost_again), DUT_TEST(test_read_responses), DUT_TEST(test_reads),
		DUT_TEST(test_new_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
