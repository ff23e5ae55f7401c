/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Which requests carry AckReq, and ACK probes for those that do not. */
#include "dut.h"

/* Local ACK Timeout code 14: 4.096 us x 2^14. */
#define TIMEOUT (UINT64_C(4096) << 14)
#define ASK_AFTER MS
/* Maximum interval of the back-off. */
#define LONGEST_WAIT (TIMEOUT / 8)
#define MOST_UNASKED 8
/* Code of the shortest timeout that leaves time for an ACK probe: 16.8 ms. */
#define SHORTEST_PATIENT_CODE 12

/* Posts a WRITE of one packet; returns true if the packet has AckReq. */
static bool asks(struct dut *dut, uint32_t psn, uint32_t flags)
{
	dut_post(dut, ENG_WRITE, 8, flags);
	return expect_packet(dut, WIRE_WRITE_ONLY, psn)->ack_request;
}

/* A signaled request has AckReq in its last packet; others if seven without it are in flight. */
static void test_signals_and_streams(void **state)
{
	struct dut *dut = dut_unlimited((struct dut_config){ 0 });
	uint32_t psn = DUT_SQ_PSN;

	(void)state;
	/* rule S7 test */
	dut_post(dut, ENG_SEND, 2 * DUT_MTU, ENG_SIGNALED);
	assert_false(expect_packet(dut, WIRE_SEND_FIRST, psn++)->ack_request);
	assert_true(expect_packet(dut, WIRE_SEND_LAST, psn)->ack_request);
	dut_ack(dut, psn++, NO_CREDITS_REPORTED, 1);
	for (int round = 0; round < 3; round++) {
		for (int i = 1; i < MOST_UNASKED; i++)
			assert_false(asks(dut, psn++, 0));
		assert_true(asks(dut, psn++, 0));
		/* One ACK is due and will cover these packets as well. */
		for (int i = 0; i < 2 * MOST_UNASKED; i++)
			assert_false(asks(dut, psn++, 0));
		dut_ack(dut, psn - 1, NO_CREDITS_REPORTED, psn - DUT_SQ_PSN - 1);
		assert_int_equal(dut_info(dut).sq_used, 0);
	}
	assert_int_equal(dut->wc_count, 1);
}

/* Expects an ACK probe: a SEND of 0 bytes with an old PSN; the peer only acknowledges it. */
static void expect_solicitation(struct dut *dut, uint32_t psn)
{
	const struct wire_packet *packet = expect_packet(dut, WIRE_SEND_ONLY, psn);

	assert_true(packet->ack_request);
	assert_int_equal(packet->payload_length, 0);
	expect_silence(dut);
}

static uint64_t solicitations(struct dut *dut)
{
	return dut_info(dut).counters[ENG_COUNT_ACK_PROBES];
}

/* Without an ACK an ACK probe is sent, and no retry; its ACK acknowledges all sent packets. */
static void test_asked_later(void **state)
{
	struct dut *dut = dut_unlimited((struct dut_config){ 0 });
	uint64_t start = dut->now;

	(void)state;
	/* rule S7 test, rule S10 test */
	for (uint32_t i = 0; i < 3; i++)
		assert_false(asks(dut, DUT_SQ_PSN + i, 0));
	assert_true(eng_deadline(dut->qp) == start + ASK_AFTER);
	dut_advance(dut, ASK_AFTER - 1);
	expect_silence(dut);
	dut_advance(dut, 1);
	expect_solicitation(dut, DUT_SQ_PSN - 1);
	assert_int_equal(solicitations(dut), 1);
	assert_int_equal(dut_info(dut).in_flight, 3);
	dut_ack(dut, DUT_SQ_PSN + 2, NO_CREDITS_REPORTED, 3);
	expect_silence(dut);
	assert_int_equal(dut_info(dut).sq_used, 0);
	assert_true(eng_deadline(dut->qp) == ENG_NEVER);
	/* The next ACK probe has the last PSN that has been acknowledged by then. */
	assert_false(asks(dut, DUT_SQ_PSN + 3, 0));
	dut_advance_to_deadline(dut);
	expect_solicitation(dut, DUT_SQ_PSN + 2);
}

/* Without responses ACK probes are sent at growing intervals, and the timeout stays. */
static void test_asked_in_vain(void **state)
{
	struct dut *dut = dut_unlimited((struct dut_config){ 0 });
	uint64_t start = dut->now, sent = 0;

	(void)state;
	/* rule S10 test */
	assert_false(asks(dut, DUT_SQ_PSN, 0));
	for (uint64_t wait = ASK_AFTER; dut->now + wait < start + TIMEOUT; sent++) {
		assert_true(eng_deadline(dut->qp) == dut->now + wait);
		dut_advance_to_deadline(dut);
		expect_solicitation(dut, DUT_SQ_PSN - 1);
		wait = 2 * wait < LONGEST_WAIT ? 2 * wait : LONGEST_WAIT;
	}
	assert_true(sent > 7);
	assert_int_equal(solicitations(dut), sent);
	assert_int_equal(dut_info(dut).retries_left, 7);
	assert_true(eng_deadline(dut->qp) == start + TIMEOUT);
	dut_advance_to_deadline(dut);
	assert_true(expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN)->ack_request);
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_TIMEOUTS], 1);
	assert_int_equal(dut_info(dut).retries_left, 6);
	assert_true(eng_deadline(dut->qp) == dut->now + TIMEOUT);
}

/*
 * An ACK probe does not read the memory of the request, which the application may have freed if it
 * knows by other means that the request is done.
 */
static void test_memory_is_not_read_again(void **state)
{
	struct dut *dut = dut_unlimited((struct dut_config){ 0 });
	unsigned int regions = dut->region_count;

	(void)state;
	/* rule S9 test */
	assert_false(asks(dut, DUT_SQ_PSN, 0));
	dut->region_count = 0;
	dut_advance_to_deadline(dut);
	expect_solicitation(dut, DUT_SQ_PSN - 1);
	dut_ack(dut, DUT_SQ_PSN, NO_CREDITS_REPORTED, 1);
	dut->region_count = regions;
	assert_int_equal(dut_info(dut).state, ENG_RTS);
	assert_int_equal(dut_info(dut).sq_used, 0);
}

/* An ACK probe that could not be sent is sent again, unless the ACK has arrived. */
static void test_solicitation_that_does_not_go(void **state)
{
	struct dut *dut = dut_unlimited((struct dut_config){ 0 });
	struct eng_burst burst = dut_empty_burst(dut, 1);

	(void)state;
	/* rule S7 test */
	assert_false(asks(dut, DUT_SQ_PSN, 0));
	dut->now = eng_deadline(dut->qp);
	eng_expire(dut->qp, dut->now);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(dut_transmit(dut, &burst, ENG_REQUESTS), ENG_TX_BURST);
		assert_int_equal(burst.kind, ENG_BURST_ACK_PROBE);
		assert_int_equal(dut_transmit(dut, &burst, ENG_REQUESTS), ENG_TX_IDLE);
		burst.kind = ENG_BURST_ACK_PROBE;
		burst.packets = 0;
		burst.bytes = 0;
		eng_tx_rollback(dut->qp, &burst);
	}
	expect_solicitation(dut, DUT_SQ_PSN - 1);
	assert_int_equal(solicitations(dut), 1);
	/* A pending ACK probe is dropped when the ACK arrives without it. */
	dut->now = eng_deadline(dut->qp);
	eng_expire(dut->qp, dut->now);
	assert_int_equal(solicitations(dut), 2);
	dut_ack(dut, DUT_SQ_PSN, NO_CREDITS_REPORTED, 1);
	expect_silence(dut);
}

/* At a low rate a message has AckReq once half the time to an ACK probe passed without progress. */
static void test_slow_messages(void **state)
{
	struct dut *dut = dut_unlimited((struct dut_config){ 0 });

	(void)state;
	/* rule S7 test */
	assert_false(asks(dut, DUT_SQ_PSN, 0));
	dut_advance(dut, ASK_AFTER / 2 - 1);
	assert_false(asks(dut, DUT_SQ_PSN + 1, 0));
	dut_advance(dut, 1);
	assert_true(asks(dut, DUT_SQ_PSN + 2, 0));
}

/* Every request has AckReq if it is signaled, or if timeout or retry count allow no ACK probe. */
static void test_no_time_to_ask_later(void **state)
{
	const struct dut_config configs[] = {
		{ .timeout_code = DUT_NO_TIMEOUT },
		{ .retry_count = DUT_NO_RETRY },
		{ .timeout_code = SHORTEST_PATIENT_CODE - 1 },
		{ .signal_all = true },
	};
	struct dut *dut;

	(void)state;
	/* rule S7 test */
	for (unsigned int i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
		dut = dut_unlimited(configs[i]);
		assert_true(asks(dut, DUT_SQ_PSN, 0));
		assert_true(asks(dut, DUT_SQ_PSN + 1, 0));
		dut_teardown(NULL);
	}
	dut = dut_unlimited((struct dut_config){ .timeout_code = SHORTEST_PATIENT_CODE });
	assert_false(asks(dut, DUT_SQ_PSN, 0));
}

/* For a second after a loss every request has AckReq, to detect the loss of the last one soon. */
static void test_after_a_loss(void **state)
{
	struct dut *dut = dut_unlimited((struct dut_config){ 0 });

	(void)state;
	/* rule S7 test */
	assert_false(asks(dut, DUT_SQ_PSN, 0));
	assert_false(asks(dut, DUT_SQ_PSN + 1, 0));
	dut_nak(dut, DUT_SQ_PSN, NAK_SEQUENCE, 0);
	assert_true(expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN)->ack_request);
	assert_true(expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN + 1)->ack_request);
	dut_ack(dut, DUT_SQ_PSN + 1, NO_CREDITS_REPORTED, 2);
	assert_true(asks(dut, DUT_SQ_PSN + 2, 0));
	dut_ack(dut, DUT_SQ_PSN + 2, NO_CREDITS_REPORTED, 3);
	dut_advance(dut, 1001 * MS);
	assert_false(asks(dut, DUT_SQ_PSN + 3, 0));
}

/* AckReq is set while other queue pairs have packets in flight and may wait for the budget. */
static void test_other_queue_pairs(void **state)
{
	struct eng_inflight_budget share = { .limit = 1 << 20 };
	struct dut *other = dut_unlimited((struct dut_config){ .share = &share });
	struct dut *dut = dut_unlimited((struct dut_config){ .share = &share });

	(void)state;
	/* rule S7 test */
	assert_true(asks(other, DUT_SQ_PSN, ENG_SIGNALED));
	assert_true(asks(dut, DUT_SQ_PSN, 0));
	dut_ack(dut, DUT_SQ_PSN, NO_CREDITS_REPORTED, 1);
	dut_ack(other, DUT_SQ_PSN, NO_CREDITS_REPORTED, 1);
	assert_false(asks(dut, DUT_SQ_PSN + 1, 0));
}

/* AckReq is set if the send queue is half full, and always if it has one entry. */
static void test_full_queue(void **state)
{
	struct dut *dut = dut_unlimited((struct dut_config){ .sq_slots = 8 });

	(void)state;
	/* rule S9 test */
	for (uint32_t i = 0; i < 3; i++)
		assert_false(asks(dut, DUT_SQ_PSN + i, 0));
	assert_true(asks(dut, DUT_SQ_PSN + 3, 0));
	dut_teardown(NULL);
	dut = dut_unlimited((struct dut_config){ .sq_slots = 1 });
	assert_true(asks(dut, DUT_SQ_PSN, 0));
}

/* With few credits AckReq is set, to get new ones before they are used up. */
static void test_few_credits(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });

	(void)state;
	/* rule C10 test */
	dut_ack(dut, DUT_SQ_PSN - 1, ACK_CODE(9), 0); /* 24 */
	for (uint32_t i = 0; i < 24; i++) {
		bool few = i + 1 > 24 - 16, due = i >= MOST_UNASKED;

		dut_post(dut, ENG_SEND, 8, 0);
		assert_int_equal(expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN + i)->ack_request,
				 few || (i + 1 == MOST_UNASKED && !due));
	}
}

/*
 * A signaled local request completes after the requests before it, so an ACK probe is sent at once.
 */
static void test_local_request_waits(void **state)
{
	struct dut *dut = dut_unlimited((struct dut_config){ 0 });
	struct eng_send_wqe *wqe;

	(void)state;
	/* rule C15 test, rule S9 test */
	assert_false(asks(dut, DUT_SQ_PSN, 0));
	wqe = dut_wqe(dut, ENG_LOCAL_INV, 0, ENG_SIGNALED);
	wqe->immediate = 0x7777;
	eng_sq_push(dut->qp);
	expect_silence(dut);
	expect_no_wc(dut);
	assert_true(eng_deadline(dut->qp) <= dut->now);
	dut_advance(dut, 0);
	eng_expire(dut->qp, dut->now);
	expect_solicitation(dut, DUT_SQ_PSN - 1);
	dut_ack(dut, DUT_SQ_PSN, NO_CREDITS_REPORTED, 1);
	assert_int_equal(dut->wc_count, 1);
}

/* A request with a local error fails after the requests before it: an ACK probe is sent at once. */
static void test_local_fault_waits(void **state)
{
	struct dut *dut = dut_unlimited((struct dut_config){ 0 });
	struct eng_send_wqe *wqe;

	(void)state;
	/* rule S9 test, rule S13 test */
	assert_false(asks(dut, DUT_SQ_PSN, 0));
	wqe = dut_wqe(dut, ENG_WRITE, 8, 0);
	wqe->data.sge[0].lkey = 0x7777;
	eng_sq_push(dut->qp);
	expect_silence(dut);
	expect_no_wc(dut);
	assert_true(eng_deadline(dut->qp) <= dut->now);
	eng_expire(dut->qp, dut->now);
	expect_solicitation(dut, DUT_SQ_PSN - 1);
	dut_ack(dut, DUT_SQ_PSN, NO_CREDITS_REPORTED, 1);
	assert_int_equal(dut->wc_count, 1);
	assert_int_equal(dut->wcs[0].status, ENG_LOC_PROT_ERR);
}

/* In SQD the application waits for the event, so an ACK probe is sent at once. */
static void test_drain(void **state)
{
	struct dut *dut = dut_unlimited((struct dut_config){ 0 });

	(void)state;
	/* rule S10 test */
	dut->attr->sq_drained_event = true;
	assert_false(asks(dut, DUT_SQ_PSN, 0));
	dut_set_state(dut, ENG_SQD);
	assert_true(eng_deadline(dut->qp) <= dut->now);
	eng_expire(dut->qp, dut->now);
	expect_solicitation(dut, DUT_SQ_PSN - 1);
	assert_int_equal(dut_count_events(dut, ENG_EVENT_SQ_DRAINED), 0);
	dut_ack(dut, DUT_SQ_PSN, NO_CREDITS_REPORTED, 1);
	assert_int_equal(dut_count_events(dut, ENG_EVENT_SQ_DRAINED), 1);
}

/* After the first response of a READ the others are still due: no ACK probe is sent. */
static void test_read_in_part(void **state)
{
	struct dut *dut = dut_unlimited((struct dut_config){ 0 });
	uint8_t bytes[DUT_MTU] = { 0 };

	(void)state;
	/* rule S12 test */
	dut_post(dut, ENG_READ, 3 * DUT_MTU, ENG_SIGNALED);
	expect_packet(dut, WIRE_READ_REQUEST, DUT_SQ_PSN);
	assert_false(asks(dut, DUT_SQ_PSN + 3, 0));
	dut_give_response(dut, WIRE_READ_RESPONSE_FIRST, DUT_SQ_PSN, 0, bytes, DUT_MTU);
	assert_true(eng_deadline(dut->qp) == dut->now + TIMEOUT);
	dut_give_response(dut, WIRE_READ_RESPONSE_MIDDLE, DUT_SQ_PSN + 1, 0, bytes, DUT_MTU);
	dut_give_response(dut, WIRE_READ_RESPONSE_LAST, DUT_SQ_PSN + 2, 1, bytes, DUT_MTU);
	/* Only the WRITE is in flight, and has no AckReq. */
	assert_true(eng_deadline(dut->qp) == dut->now + ASK_AFTER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DUT_TEST(test_signals_and_streams),
		DUT_TEST(test_asked_later),
		DUT_TEST(test_asked_in_vain),
		DUT_TEST(test_memory_is_not_read_again),
		DUT_TEST(test_solicitation_that_does_not_go),
		DUT_TEST(test_slow_messages),
		DUT_TEST(test_no_time_to_ask_later),
		DUT_TEST(test_after_a_loss),
		DUT_TEST(test_full_queue),
		DUT_TEST(test_other_queue_pairs),
		DUT_TEST(test_few_credits),
		DUT_TEST(test_local_request_waits),
		DUT_TEST(test_local_fault_waits),
		DUT_TEST(test_drain),
		DUT_TEST(test_read_in_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
