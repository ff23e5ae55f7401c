/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* The congestion window on a network: its initial size, its reductions, and its growth. */
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

/* Acknowledges the oldest count packets one by one, those from number marked_from on with BECN. */
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

/* A round trip: acknowledges all packets in flight, and returns their number. */
static uint32_t round_trip(struct dut *dut, uint32_t marked_from)
{
	uint32_t count = eng_in_flight(dut->qp);

	acknowledge(dut, count, marked_from);
	return count;
}

/* With ECT the window starts with few packets and doubles; without, it starts with the default. */
static void test_start(void **state)
{
	struct dut *dut = sending(true);

	(void)state;
	assert_uint_in_range(eng_in_flight(dut->qp), 15, 16);
	round_trip(dut, UINT32_MAX);
	assert_uint_in_range(eng_in_flight(dut->qp), 28, 32);
	assert_uint_in_range(eng_in_flight(sending(false)->qp), 85, 90);
}

/* While the window is small each packet has AckReq, so that the window moves with each. */
static void test_clocked(void **state)
{
	struct dut *dut = sending(true);

	(void)state;
	for (unsigned int i = 0; i < dut->sent_count; i++)
		assert_true(dut->sent[i].packet.ack_request);
}

/* CNPs reduce the window by a fifth, only once per round trip, and not below two packets. */
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
	/* The window grows by one packet per round trip. */
	for (int trip = 0; trip < 10; trip++)
		round_trip(dut, UINT32_MAX);
	assert_uint_in_range(eng_in_flight(dut->qp), 9, 13);
}

/*
 * Marks echoed by ACKs reduce the window in proportion to the fraction of marked packets, the first
 * time by half; CNPs then do not concern the window.
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
	/* One mark after many packets without any hardly reduces the window. */
	round_trip(dut, cwnd - 1);
	round_trip(dut, UINT32_MAX);
	assert_uint_in_range(eng_in_flight(dut->qp), cwnd - 8, cwnd + 2);
	/* If all packets are marked for many round trips, the window is reduced to two packets. */
	for (int trip = 0; trip < 100; trip++)
		round_trip(dut, 0);
	assert_uint_in_range(eng_in_flight(dut->qp), 2, 2);
}

/* A loss halves the window, once for all packets in flight. */
static void test_loss(void **state)
{
	struct dut *dut = sending(false);
	uint32_t before = dut_info(dut).cwnd;

	(void)state;
	dut_nak(dut, DUT_SQ_PSN + 3, NAK_SEQUENCE, 3);
	dut_nak(dut, DUT_SQ_PSN + 4, NAK_SEQUENCE, 4);
	assert_uint_in_range(dut_info(dut).cwnd, before / 2 - 1, before / 2 + 1);
}

/* If retransmitted packets are lost as well, which only a probe detects, it is halved again. */
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

/* Returns the number of READs sent at once, of more than the window allows. */
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
 * On a network the responses of the READs in flight fill a window; the next READ is sent if less is
 * in flight, since it cannot be sent in parts.  On a host READs weigh a quarter of that.
 */
static void test_reads(void **state)
{
	const uint32_t window = 90, packets = DUT_REGION_BYTES / 4096;

	(void)state;
	assert_int_equal(reads_at_once(true), (window + packets - 1) / packets);
	assert_int_equal(reads_at_once(false), 4 * window / packets);
}

/* Returns the bytes of READ responses sent in this time, limited by their pace only. */
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

/* READ responses have no ACKs: CNPs reduce their rate, which increases again without CNPs. */
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
	/* The rate doubles until the first CNP. */
	assert_true(answered(dut, 2 * MS) > 2 * first);
	for (int i = 0; i < 40; i++) {
		give_cnp(dut);
		least = answered(dut, MS);
	}
	assert_true(least <= 3 * 4200);
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_CNP_HANDLED], 40);
	assert_true(answered(dut, 200 * MS) > 1000000);
}

/* On a host, where nothing sends CNPs, they are ignored. */
static void test_host(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .cwnd = 64 });
	uint32_t before = dut_info(dut).cwnd;

	(void)state;
	give_cnp(dut);
	assert_int_equal(dut_info(dut).cwnd, before);
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_CNP_IGNORED], 1);
}

/* A new path set in SQD may be that of a network: the window then starts as on a network. */
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
