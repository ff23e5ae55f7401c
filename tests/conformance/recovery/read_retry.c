/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* READ responses after a missing one are placed, and only the missing ones are requested again. */
#include "dut.h"

#include <string.h>

#define PACKETS 6
#define READ_BYTES (PACKETS * DUT_MTU - 100)

/* READs from the others cross the wrap of PSNs, and the PSN farthest from 0. */
static const uint32_t first_psns[] = { DUT_SQ_PSN, 0xfffffd, 0x7ffffd };
#define FIRST_PSNS (sizeof(first_psns) / sizeof(first_psns[0]))
static uint8_t data[READ_BYTES];

/* Returns a requester whose peer reports credits, as uroce does. */
static struct dut *reader_of(struct dut_config config)
{
	struct dut *dut = dut_rts(config);

	dut_ack(dut, config.sq_psn - 1, ACK_CODE(4), 0);
	memset(dut->local, 0, DUT_REGION_BYTES);
	dut_fill(data, READ_BYTES, 9000);
	return dut;
}

static struct dut *reader(uint32_t sq_psn)
{
	return reader_of((struct dut_config){ .sq_psn = sq_psn });
}

static uint32_t bytes_of(uint32_t i)
{
	return i == PACKETS - 1 ? READ_BYTES - i * DUT_MTU : DUT_MTU;
}

/* Gives response packet i of READ n, both counted from 0. */
static void answer(struct dut *dut, uint32_t n, uint32_t i, uint8_t opcode)
{
	struct wire_packet packet = dut_packet(dut, opcode, dut->config.sq_psn + n * PACKETS + i);

	packet.syndrome = ACK_CODE(0);
	packet.payload = data + i * DUT_MTU;
	packet.payload_length = bytes_of(i);
	dut_give(dut, &packet);
}

static uint8_t usual(uint32_t i)
{
	if (i == 0)
		return WIRE_READ_RESPONSE_FIRST;
	return i == PACKETS - 1 ? WIRE_READ_RESPONSE_LAST : WIRE_READ_RESPONSE_MIDDLE;
}

/* Gives all responses to READ n but the missing ones (bit i: packet i). */
static void answer_without(struct dut *dut, uint32_t n, uint32_t missing)
{
	for (uint32_t i = 0; i < PACKETS; i++)
		if (!(missing >> i & 1))
			answer(dut, n, i, usual(i));
}

static void expect_request(struct dut *dut, uint32_t n, uint32_t from, uint32_t to)
{
	uint32_t length = (to == PACKETS ? READ_BYTES : to * DUT_MTU) - from * DUT_MTU;
	uint32_t psn = (dut->config.sq_psn + n * PACKETS + from) & 0xffffff;
	const struct wire_packet *packet = expect_packet(dut, WIRE_READ_REQUEST, psn);

	assert_true(packet->va == DUT_THEIR_VA + from * DUT_MTU);
	assert_int_equal(packet->dma_length, length);
	assert_int_equal(packet->rkey, DUT_THEIR_RKEY);
	assert_true(packet->ack_request);
}

/*
 * Expects the ACK probe that is sent first after a probe timeout.  Here it gets no response (in
 * network_reads.c it does).
 */
static void expect_sentinel(struct dut *dut, uint32_t n, uint32_t from)
{
	uint32_t psn = dut->config.sq_psn + n * PACKETS + from - 1;

	assert_int_equal(expect_packet(dut, WIRE_SEND_ONLY, psn & 0xffffff)->payload_length, 0);
}

/*
 * A missing response is requested alone, once the last response of its READ has arrived; the new
 * response is an Only or a Last within the READ.  rule S12 test
 */
static void test_gap_alone(void **state)
{
	(void)state;
	for (unsigned int row = 0; row < FIRST_PSNS; row++) {
		struct dut *dut = reader(first_psns[row]);
		uint64_t id = dut_post(dut, ENG_READ, READ_BYTES, ENG_SIGNALED);

		expect_request(dut, 0, 0, PACKETS);
		for (uint32_t i = 0; i < PACKETS - 1; i++)
			if (i != 2)
				answer(dut, 0, i, usual(i));
		expect_silence(dut);
		answer(dut, 0, PACKETS - 1, usual(PACKETS - 1));
		expect_request(dut, 0, 2, 3);
		expect_silence(dut);
		expect_no_wc(dut);
		answer(dut, 0, 2, WIRE_READ_RESPONSE_ONLY);
		expect_wc(dut, id, ENG_SUCCESS);
		expect_pattern(dut->local, READ_BYTES, 9000);
		expect_silence(dut);
		assert_int_equal(eng_in_flight(dut->qp), 0);
		if (row < FIRST_PSNS - 1)
			dut_teardown(NULL);
	}
}

/*
 * Each of several holes is requested, and nothing between them; one burst of responses may fill
 * both.
 */
static void test_gaps_of_one_read(void **state)
{
	(void)state;
	for (int together = 0; together < 2; together++) {
		struct dut *dut = reader(DUT_SQ_PSN);
		uint64_t id = dut_post(dut, ENG_READ, READ_BYTES, ENG_SIGNALED);

		expect_request(dut, 0, 0, PACKETS);
		answer_without(dut, 0, 1 << 1 | 1 << 3);
		expect_request(dut, 0, 1, 2);
		expect_request(dut, 0, 3, 4);
		expect_silence(dut);
		answer(dut, 0, 1, together ? WIRE_READ_RESPONSE_FIRST : WIRE_READ_RESPONSE_ONLY);
		if (together)
			answer(dut, 0, 2, WIRE_READ_RESPONSE_MIDDLE);
		expect_no_wc(dut);
		answer(dut, 0, 3, together ? WIRE_READ_RESPONSE_LAST : WIRE_READ_RESPONSE_ONLY);
		expect_wc(dut, id, ENG_SUCCESS);
		expect_pattern(dut->local, READ_BYTES, 9000);
		expect_silence(dut);
		if (!together)
			dut_teardown(NULL);
	}
}

/* READs complete in order, and a WRITE between them by the responses to the READ after it. */
static void test_order_stays(void **state)
{
	struct dut *dut = reader(DUT_SQ_PSN);
	uint64_t ids[3];

	(void)state;
	/* rule S8 test */
	for (unsigned int n = 0; n < 3; n++)
		ids[n] = dut_post(dut, n == 1 ? ENG_WRITE : ENG_READ, READ_BYTES, ENG_SIGNALED);
	dut_forget(dut);
	answer_without(dut, 0, 1 << 0);
	expect_request(dut, 0, 0, 1);
	answer_without(dut, 2, 1 << 4);
	expect_request(dut, 2, 4, 5);
	expect_no_wc(dut);
	answer(dut, 0, 0, WIRE_READ_RESPONSE_ONLY);
	expect_wc(dut, ids[0], ENG_SUCCESS);
	expect_wc(dut, ids[1], ENG_SUCCESS);
	expect_no_wc(dut);
	answer(dut, 2, 4, WIRE_READ_RESPONSE_ONLY);
	expect_wc(dut, ids[2], ENG_SUCCESS);
	assert_int_equal(dut_info(dut).outstanding_reads, 0);
}

/* A placed response is not written again, even if it arrives again with other data. */
static void test_placed_once(void **state)
{
	struct dut *dut = reader(DUT_SQ_PSN);

	(void)state;
	dut_post(dut, ENG_READ, READ_BYTES, ENG_SIGNALED);
	dut_forget(dut);
	answer_without(dut, 0, 1 << 1);
	memset(data, 0xee, READ_BYTES);
	answer(dut, 0, 4, usual(4));
	expect_pattern(dut->local + 4 * DUT_MTU, DUT_MTU, 9000 + 4 * DUT_MTU);
}

/* A response with a wrong opcode is not placed: everything from the hole on is requested again. */
static void test_wrong_form_is_not_placed(void **state)
{
	struct dut *dut = reader(DUT_SQ_PSN);

	(void)state;
	dut_post(dut, ENG_READ, READ_BYTES, ENG_SIGNALED);
	dut_forget(dut);
	answer(dut, 0, 0, usual(0));
	answer(dut, 0, 3, WIRE_READ_RESPONSE_LAST);
	expect_request(dut, 0, 1, PACKETS);
	assert_int_equal(dut->local[3 * DUT_MTU], 0);
}

/* The same if the PSN compares as before 0, the initial parts_psn: no part has been requested. */
static void test_wrong_form_far_away(void **state)
{
	struct dut *dut = reader(0x900000);

	(void)state;
	dut_post(dut, ENG_READ, READ_BYTES, ENG_SIGNALED);
	dut_forget(dut);
	answer(dut, 0, 0, usual(0));
	answer(dut, 0, 3, WIRE_READ_RESPONSE_LAST);
	expect_request(dut, 0, 1, PACKETS);
	assert_int_equal(dut->local[3 * DUT_MTU], 0);
}

/* The new response is lost as well: it is requested again, and all from it on after a timeout. */
static void test_answer_is_lost_as_well(void **state)
{
	struct dut *dut = reader(DUT_SQ_PSN);
	uint64_t id = dut_post(dut, ENG_READ, READ_BYTES, ENG_SIGNALED), began = dut->now;

	(void)state;
	/* rule S10 test */
	dut_forget(dut);
	answer_without(dut, 0, 1 << 2);
	expect_request(dut, 0, 2, 3);
	assert_true(dut_advance_to_deadline(dut));
	assert_true(dut->now - began < 10 * MS);
	expect_request(dut, 0, 2, 3);
	while (dut_info(dut).counters[ENG_COUNT_TIMEOUTS] == 0)
		assert_true(dut_advance_to_deadline(dut));
	dut_pull(dut);
	dut->sent_read = dut->sent_count - 1;
	expect_request(dut, 0, 2, PACKETS);
	/* Placed responses stay placed. */
	answer(dut, 0, 2, WIRE_READ_RESPONSE_FIRST);
	expect_wc(dut, id, ENG_SUCCESS);
	expect_pattern(dut->local, READ_BYTES, 9000);
}

/*
 * Responses to earlier requests arrive before the response that was requested again, however long
 * that takes; responses to a later READ show that it is lost.
 */
static void test_asked_for_again_by_later_responses(void **state)
{
	struct dut *dut = reader(DUT_SQ_PSN);

	(void)state;
	dut_post(dut, ENG_READ, READ_BYTES, ENG_SIGNALED);
	dut_post(dut, ENG_READ, READ_BYTES, ENG_SIGNALED);
	dut_forget(dut);
	answer_without(dut, 0, 1 << 2);
	expect_request(dut, 0, 2, 3);
	dut->now += 20 * MS;
	answer_without(dut, 1, 0);
	expect_silence(dut);
	dut_post(dut, ENG_READ, READ_BYTES, ENG_SIGNALED);
	expect_request(dut, 2, 0, PACKETS);
	dut->now += 20 * MS;
	answer(dut, 2, 0, usual(0));
	expect_request(dut, 0, 2, 3);
	expect_silence(dut);
}

/* An ACK after a READ shows that no more responses will arrive: only the holes are requested. */
static void test_ack_behind_gap(void **state)
{
	struct dut *dut = reader(DUT_SQ_PSN);

	(void)state;
	/* rule S8 test */
	dut_post(dut, ENG_READ, READ_BYTES, ENG_SIGNALED);
	dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
	dut_forget(dut);
	answer_without(dut, 0, 1 << 2 | 1 << 5);
	expect_silence(dut);
	dut_ack(dut, DUT_SQ_PSN + PACKETS, ACK_CODE(0), 2);
	expect_request(dut, 0, 2, 3);
	expect_request(dut, 0, PACKETS - 1, PACKETS);
	/* Only once. */
	dut_ack(dut, DUT_SQ_PSN + PACKETS, ACK_CODE(0), 2);
	expect_silence(dut);
}

/* The acknowledged PSN is remembered while responses are missing. */
static void test_ack_behind_gap_is_remembered(void **state)
{
	struct dut *dut = reader(DUT_SQ_PSN);

	(void)state;
	dut_post(dut, ENG_READ, READ_BYTES, ENG_SIGNALED);
	dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
	dut_forget(dut);
	answer_without(dut, 0, 1 << 2);
	dut_ack(dut, DUT_SQ_PSN + PACKETS, ACK_CODE(0), 2);
	expect_request(dut, 0, 2, 3);
	answer(dut, 0, 2, WIRE_READ_RESPONSE_ONLY);
	assert_int_equal(eng_in_flight(dut->qp), 0);
}

/* Returns a dut with a READ, of which only the first packets have arrived, at this interval. */
static struct dut *broken_off(struct dut_config config, uint32_t packets, uint64_t apart)
{
	struct dut *dut;

	config.sq_psn = DUT_SQ_PSN;
	dut = reader_of(config);
	dut_post(dut, ENG_READ, READ_BYTES, ENG_SIGNALED);
	dut_forget(dut);
	for (uint32_t i = 0; i < packets; i++) {
		dut->now += apart;
		answer(dut, 0, i, usual(i));
	}
	/* Our credits have been reported to the peer. */
	dut_forget(dut);
	return dut;
}

/*
 * The first response shows the round-trip time.  After the probe timeout without responses an ACK
 * probe is sent.  After twice that time the last responses are requested again, since nothing else
 * would show that they are lost.
 */
static void test_end_is_lost(void **state)
{
	const struct dut_config config = { .network = true };

	(void)state;
	for (uint64_t apart = 50 * US; apart <= MS; apart += 475 * US) {
		uint64_t wait = apart + (apart < 150 * US ? 300 * US : 2 * apart);
		struct dut *dut = broken_off(config, 4, apart);

		dut_advance(dut, wait - 1);
		expect_silence(dut);
		dut_advance(dut, 1);
		expect_sentinel(dut, 0, 4);
		dut_advance(dut, 2 * wait - 1);
		expect_silence(dut);
		dut_advance(dut, 1);
		expect_request(dut, 0, 4, PACKETS);
		assert_int_equal(dut_info(dut).counters[ENG_COUNT_TAIL_LOSS_PROBES], 1);
		/* And again, if that request is lost as well. */
		dut_advance_to_deadline(dut);
		expect_request(dut, 0, 4, PACKETS);
		if (apart + 475 * US <= MS)
			dut_teardown(NULL);
	}
}

/* On a host lost last responses are requested again only after a timeout. */
static void test_end_is_lost_on_a_host(void **state)
{
	struct dut *dut = broken_off((struct dut_config){ 0 }, 4, 50 * US);

	(void)state;
	while (dut_info(dut).counters[ENG_COUNT_TIMEOUTS] == 0)
		assert_true(dut_advance_to_deadline(dut));
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_TAIL_LOSS_PROBES], 0);
}

/* Returns a dut on a network: READ 0 is answered, with responses 50 us apart, more are posted. */
static struct dut *timed_reader(uint32_t more, uint32_t cwnd)
{
	const struct dut_config config = { .network = true, .max_rd_atomic = 16, .cwnd = cwnd };
	struct dut *dut = broken_off(config, PACKETS, 50 * US);

	for (uint32_t i = 0; i < more; i++)
		dut_post(dut, ENG_READ, READ_BYTES, ENG_SIGNALED);
	return dut;
}

static uint32_t first_psn(uint32_t n)
{
	return DUT_SQ_PSN + n * PACKETS;
}

/* The request of READ 1 is lost; after the NAK it is sent again, but not READs 2 and 3. */
static struct dut *lose_request(void)
{
	struct dut *dut = timed_reader(3, 0);

	for (uint32_t n = 1; n <= 3; n++)
		expect_request(dut, n, 0, PACKETS);
	dut_nak(dut, first_psn(1), NAK_SEQUENCE, 1);
	expect_packet(dut, WIRE_ACKNOWLEDGE, DUT_RQ_PSN - 1);
	expect_request(dut, 1, 0, PACKETS);
	expect_silence(dut);
	return dut;
}

/* The last response to a READ does not show that the READs after it were lost. */
static void test_lost_request(void **state)
{
	struct dut *dut = lose_request();

	(void)state;
	for (uint32_t n = 1; n <= 3; n++) {
		answer_without(dut, n, 0);
		expect_silence(dut);
		assert_int_equal(dut_info(dut).counters[ENG_COUNT_ACKS_PAST_HOLE], n > 1);
	}
	assert_int_equal(eng_in_flight(dut->qp), 0);
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_FAST_RETRANSMITS], 1);
}

/* The peer has not kept the READs after the lost one: a probe or a NAK shows this. */
static void test_lost_request_of_a_forgetful_peer(void **state)
{
	struct dut *dut = lose_request();

	(void)state;
	answer_without(dut, 1, 0);
	expect_silence(dut);
	assert_true(eng_deadline(dut->qp) < dut->now + MS);
	dut_advance_to_deadline(dut);
	expect_request(dut, 2, 0, PACKETS);
	expect_silence(dut);
	dut_teardown(NULL);

	dut = lose_request();
	answer_without(dut, 1, 0);
	dut_nak(dut, first_psn(2), NAK_SEQUENCE, 2);
	expect_request(dut, 2, 0, PACKETS);
	expect_request(dut, 3, 0, PACKETS);
}

/* The ACK of a retransmitted WRITE may be sent before the responses to a READ kept after it. */
static void test_lost_write_before_a_read(void **state)
{
	struct dut *dut = timed_reader(0, 0);

	(void)state;
	dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
	dut_post(dut, ENG_READ, READ_BYTES, ENG_SIGNALED);
	dut_forget(dut);
	dut_nak(dut, first_psn(1), NAK_SEQUENCE, 1);
	expect_packet(dut, WIRE_ACKNOWLEDGE, DUT_RQ_PSN - 1);
	expect_packet(dut, WIRE_WRITE_ONLY, first_psn(1));
	dut_ack(dut, first_psn(1), ACK_CODE(4), 2);
	expect_silence(dut);
}

/* Placed responses are not in flight: they do not keep further READs from being sent. */
static void test_window_behind_a_gap(void **state)
{
	struct dut *dut = timed_reader(12, 1);
	uint32_t asked;

	(void)state;
	dut_pull(dut);
	asked = dut->sent_count - dut->sent_read;
	assert_true(asked >= 2 && asked <= 4);
	dut_forget(dut);
	answer_without(dut, 1, 1 << 2);
	expect_request(dut, 1, 2, 3);
	/* Its response is lost.  If the window were full, no READ would be sent any more. */
	for (uint32_t n = 2; n <= 12; n++) {
		dut_pull(dut);
		answer_without(dut, n, 0);
	}
	dut_forget(dut);
	answer(dut, 1, 2, WIRE_READ_RESPONSE_ONLY);
	assert_int_equal(eng_in_flight(dut->qp), 0);
	assert_int_equal(dut->wc_count, 13);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DUT_TEST(test_gap_alone),
		DUT_TEST(test_gaps_of_one_read),
		DUT_TEST(test_order_stays),
		DUT_TEST(test_placed_once),
		DUT_TEST(test_wrong_form_is_not_placed),
		DUT_TEST(test_wrong_form_far_away),
		DUT_TEST(test_answer_is_lost_as_well),
		DUT_TEST(test_asked_for_again_by_later_responses),
		DUT_TEST(test_ack_behind_gap),
		DUT_TEST(test_ack_behind_gap_is_remembered),
		DUT_TEST(test_end_is_lost),
		DUT_TEST(test_end_is_lost_on_a_host),
		DUT_TEST(test_lost_request),
		DUT_TEST(test_lost_request_of_a_forgetful_peer),
		DUT_TEST(test_lost_write_before_a_read),
		DUT_TEST(test_window_behind_a_gap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
