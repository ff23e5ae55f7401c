/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* The requester obeys the credits that the peer reports: SSN, MSN, LSN. */
#include "dut.h"

/* Posts count requests of one packet each, and expects these packets, with PSNs from first on. */
static void post_and_expect(struct dut *dut, enum eng_op op, uint8_t opcode, uint32_t first,
			    uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		dut_post(dut, op, 8, ENG_SIGNALED);
		expect_packet(dut, opcode, first + i);
	}
}

/* Returns a dut in the state of rule C12's example: 24 requests are complete, 6 credits known. */
static struct dut *dut_of_the_example(void)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });

	post_and_expect(dut, ENG_WRITE, WIRE_WRITE_ONLY, DUT_SQ_PSN, 0x18);
	dut_ack(dut, DUT_SQ_PSN + 0x17, ACK_CODE(5), 0x18);
	assert_int_equal(dut->wc_count, 0x18);
	dut->wc_read = dut->wc_count;
	assert_int_equal(dut_info(dut).ssn, 0x18);
	return dut;
}

/*
 * Rule C12's example: MSN 18h and 6 credits give LSN 1Eh, so six SENDs are sent and the seventh is
 * limited.
 */
static void test_example_of_the_rule(void **state)
{
	struct dut *dut = dut_of_the_example();
	uint32_t psn = DUT_SQ_PSN + 0x18;

	(void)state;
	/* rule C12 test */
	assert_int_equal(dut_info(dut).lsn, 0x1e);
	assert_int_equal(dut_info(dut).credits_last_known, 6);
	for (int i = 0; i < 8; i++)
		dut_post(dut, ENG_SEND, 2 * DUT_MTU, ENG_SIGNALED);
	for (int i = 0; i < 6; i++, psn += 2) {
		expect_packet(dut, WIRE_SEND_FIRST, psn);
		expect_packet(dut, WIRE_SEND_LAST, psn + 1);
	}
	assert_true(expect_packet(dut, WIRE_SEND_FIRST, psn)->ack_request);
	expect_silence(dut);
	assert_int_equal(dut->why, ENG_TX_CREDIT);
	assert_int_equal(dut_info(dut).lsn, 0x1e);
	assert_int_equal(dut_info(dut).sent_ssn, 0x1f);
}

/* Rule C12's example: if two of the six requests need no receive WQE, LSN becomes 20h. */
static void test_example_with_two_uncredited(void **state)
{
	struct dut *dut = dut_of_the_example();
	uint32_t psn = DUT_SQ_PSN + 0x18;

	(void)state;
	/* rule C12 test: SSN 1Ah and 1Ch are a WRITE and a READ. */
	for (int i = 0; i < 10; i++)
		dut_post(dut,
			 i == 1	  ? ENG_WRITE
			 : i == 3 ? ENG_READ
				  : ENG_SEND,
			 2 * DUT_MTU, ENG_SIGNALED);
	for (int i = 0; i < 8; i++, psn += 2) {
		if (i == 1) {
			expect_packet(dut, WIRE_WRITE_FIRST, psn);
			expect_packet(dut, WIRE_WRITE_LAST, psn + 1);
		} else if (i == 3) {
			expect_packet(dut, WIRE_READ_REQUEST, psn);
		} else {
			expect_packet(dut, WIRE_SEND_FIRST, psn);
			expect_packet(dut, WIRE_SEND_LAST, psn + 1);
		}
	}
	assert_int_equal(dut_info(dut).lsn, 0x20);
	/* Request 9, SSN 21h, is limited. */
	expect_packet(dut, WIRE_SEND_FIRST, psn);
	expect_silence(dut);
	assert_int_equal(dut_info(dut).lsn, 0x20);
}

/* After each ACK, LSN includes one for each uncredited request that is not acknowledged yet. */
static void test_uncredited_across_acks(void **state)
{
	struct dut *dut = dut_of_the_example();
	uint32_t psn = DUT_SQ_PSN + 0x18;

	(void)state;
	/* rule C12 test: S W S W S S (SEND, WRITE), then ACKs of one, two, three and all of them */
	for (int i = 0; i < 6; i++)
		dut_post(dut, i == 1 || i == 3 ? ENG_WRITE : ENG_SEND, 8, ENG_SIGNALED);
	dut_forget(dut);
	assert_int_equal(dut_info(dut).lsn, 0x20);
	dut_ack(dut, psn, ACK_CODE(5), 0x19); /* the peer has posted a receive: still six */
	assert_int_equal(dut_info(dut).lsn, 0x19 + 6 + 2);
	dut_ack(dut, psn + 1, ACK_CODE(5), 0x1a);
	assert_int_equal(dut_info(dut).lsn, 0x1a + 6 + 1);
	dut_ack(dut, psn + 2, ACK_CODE(6), 0x1b); /* 8 */
	assert_int_equal(dut_info(dut).lsn, 0x1b + 8 + 1);
	dut_ack(dut, psn + 5, ACK_CODE(6), 0x1e);
	assert_int_equal(dut_info(dut).lsn, 0x1e + 8);
}

/* An old ACK that arrives late does not move LSN back. */
static void test_stale_acks_do_not_move_back(void **state)
{
	struct dut *dut = dut_of_the_example();
	uint32_t psn = DUT_SQ_PSN + 0x18;

	(void)state;
	/* rule C12 test, rule U3 test */
	post_and_expect(dut, ENG_SEND, WIRE_SEND_ONLY, psn, 4);
	dut_ack(dut, psn + 3, ACK_CODE(6), 0x1c);
	assert_int_equal(dut_info(dut).lsn, 0x1c + 8);
	dut_ack(dut, psn + 1, ACK_CODE(1), 0x1a); /* reordered on the network */
	assert_int_equal(dut_info(dut).lsn, 0x1c + 8);
	dut_ack(dut, psn + 3, ACK_CODE(0), 0x1c); /* sent before the peer posted receives */
	assert_int_equal(dut_info(dut).lsn, 0x1c + 8);
	dut_ack(dut, DUT_SQ_PSN - 1, ACK_CODE(0), 0);
	assert_int_equal(dut_info(dut).lsn, 0x1c + 8);
	for (int i = 0; i < 8; i++)
		dut_post(dut, ENG_SEND, 2 * DUT_MTU, 0);
	dut_pull(dut);
	assert_int_equal(dut->sent_count - dut->sent_read, 16);
}

/* SSN counts every request from 1. */
static void test_ssn_counts_every_kind(void **state)
{
	static const enum eng_op ops[] = {
		ENG_SEND, ENG_SEND_IMM,	    ENG_WRITE,	   ENG_WRITE_IMM,
		ENG_READ, ENG_COMPARE_SWAP, ENG_FETCH_ADD, ENG_SEND_INV
	};
	struct dut *dut = dut_rts((struct dut_config){ 0 });

	(void)state;
	/* rule C11 test */
	assert_int_equal(dut_info(dut).ssn, 0);
	for (uint32_t i = 0; i < 8; i++) {
		dut_post(dut, ops[i], 8, ENG_SIGNALED);
		assert_int_equal(dut_info(dut).ssn, i + 1);
	}
}

/* MSN counts every completed request message from 0. */
static void test_msn_counts_every_kind(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });
	uint32_t psn = DUT_RQ_PSN, msn = 0;
	static const uint8_t opcodes[] = { WIRE_SEND_ONLY, WIRE_SEND_ONLY_IMM, WIRE_WRITE_ONLY,
					   WIRE_WRITE_ONLY_IMM, WIRE_SEND_ONLY_INVALIDATE };

	(void)state;
	/* rule C11 test */
	assert_int_equal(dut_info(dut).msn, 0);
	for (int i = 0; i < 8; i++)
		dut_post_recv(dut, 4096);
	dut_forget(dut);
	for (int i = 0; i < 5; i++) {
		dut_give_request(dut, opcodes[i], psn, 8);
		expect_packet(dut, WIRE_ACKNOWLEDGE, psn++);
		assert_int_equal(dut_info(dut).msn, ++msn);
	}
	dut_give_request(dut, WIRE_SEND_FIRST, psn++, DUT_MTU);
	dut_give_request(dut, WIRE_SEND_MIDDLE, psn++, DUT_MTU);
	assert_int_equal(dut_info(dut).msn, msn);
	dut_give_request(dut, WIRE_SEND_LAST, psn++, 1);
	assert_int_equal(dut_info(dut).msn, ++msn);
	dut_give_read(dut, psn, 0, 3 * DUT_MTU);
	assert_int_equal(dut_info(dut).msn, ++msn);
	psn += 3;
	dut_give_atomic(dut, WIRE_FETCH_ADD, psn, 0, 0, 1);
	assert_int_equal(dut_info(dut).msn, ++msn);
	dut_forget(dut);
	/* A duplicate counts nothing. */
	dut_give_atomic(dut, WIRE_FETCH_ADD, psn, 0, 0, 1);
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN, 8);
	assert_int_equal(dut_info(dut).msn, msn);
}

/* 11111b means "not reported": requests are not limited from then on. */
static void test_unlimited_peer(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });

	(void)state;
	/* rule C3 test */
	for (int i = 0; i < 20; i++)
		dut_post(dut, ENG_SEND, 2 * DUT_MTU, ENG_SIGNALED);
	expect_packet(dut, WIRE_SEND_FIRST, DUT_SQ_PSN);
	expect_silence(dut);
	dut_ack(dut, DUT_SQ_PSN, NO_CREDITS_REPORTED, 0);
	dut_pull(dut);
	assert_int_equal(dut->sent_count - dut->sent_read, 39);
	assert_true(dut_info(dut).unlimited);
	assert_int_equal(dut->why, ENG_TX_IDLE);
	dut_ack(dut, DUT_SQ_PSN + 39, NO_CREDITS_REPORTED, 20);
	assert_int_equal(dut->wc_count, 20);
	/* The event is raised by the first AETH. */
	assert_int_equal(dut_count_events(dut, ENG_EVENT_CREDITS_HIDDEN), 1);
}

/* A peer reports credits after it has reported 11111b: they are obeyed from then on. */
static void test_numbers_after_unlimited(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });

	(void)state;
	/* rule C3 test, rule C19 test (its second half: the AETH decides, at any time) */
	dut_ack(dut, DUT_SQ_PSN - 1, NO_CREDITS_REPORTED, 0);
	post_and_expect(dut, ENG_SEND, WIRE_SEND_ONLY, DUT_SQ_PSN, 3);
	dut_ack(dut, DUT_SQ_PSN + 2, ACK_CODE(1), 3);
	assert_false(dut_info(dut).unlimited);
	assert_int_equal(dut_info(dut).lsn, 4);
	dut_post(dut, ENG_SEND, 8, 0);
	dut_post(dut, ENG_SEND, 2 * DUT_MTU, 0);
	expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN + 3);
	expect_packet(dut, WIRE_SEND_FIRST, DUT_SQ_PSN + 4);
	expect_silence(dut);
}

/*
 * The PSN of an unsolicited ACK is that of the last positive ACK, although a NAK has acknowledged
 * more since: the requester uses the credits, and nothing else.
 */
static void test_unsolicited_after_a_nak(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });
	struct eng_qp_info before;

	(void)state;
	/* rule C8 test, rule U3 test */
	dut_ack(dut, DUT_SQ_PSN - 1, ACK_CODE(5), 0);
	post_and_expect(dut, ENG_SEND, WIRE_SEND_ONLY, DUT_SQ_PSN, 4);
	dut_ack(dut, DUT_SQ_PSN, ACK_CODE(5), 1);
	dut_nak(dut, DUT_SQ_PSN + 3, RNR_NAK(20), 3);
	dut->wc_read = dut->wc_count;
	before = dut_info(dut);
	dut_ack(dut, DUT_SQ_PSN, ACK_CODE(8), 3);
	assert_int_equal(dut_info(dut).lsn, 3 + 16);
	assert_int_equal(dut_info(dut).unacked_psn, before.unacked_psn);
	assert_int_equal(dut_info(dut).retries_left, before.retries_left);
	expect_no_wc(dut);
	expect_silence(dut);
}

/* Reported credits are obeyed: each credit allows one SEND. */
static void test_reported_credits_are_obeyed(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });

	(void)state;
	/* rule C3 test */
	dut_ack(dut, DUT_SQ_PSN - 1, ACK_CODE(2), 0);
	for (int i = 0; i < 4; i++)
		dut_post(dut, ENG_SEND, 2 * DUT_MTU, ENG_SIGNALED);
	for (uint32_t i = 0; i < 4; i++)
		expect_packet(dut, i & 1 ? WIRE_SEND_LAST : WIRE_SEND_FIRST, DUT_SQ_PSN + i);
	expect_packet(dut, WIRE_SEND_FIRST, DUT_SQ_PSN + 4);
	expect_silence(dut);
	assert_int_equal(dut->why, ENG_TX_CREDIT);
	/* An ACK that does not acknowledge the limited SEND, but reports a credit, releases it. */
	dut_ack(dut, DUT_SQ_PSN + 3, ACK_CODE(1), 2);
	expect_packet(dut, WIRE_SEND_LAST, DUT_SQ_PSN + 5);
	expect_packet(dut, WIRE_SEND_FIRST, DUT_SQ_PSN + 6);
	expect_silence(dut);
}

/* A ghost ACK with initial credits: the credits are taken and nothing else happens. */
static void test_initial_ghost_ack(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });
	struct eng_qp_info before, after;

	(void)state;
	/* rule C9 test, rule C8 test */
	dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
	dut_forget(dut);
	before = dut_info(dut);
	assert_false(before.credits_known);
	dut_ack(dut, DUT_SQ_PSN - 1, ACK_CODE(7), 0);
	after = dut_info(dut);
	assert_true(after.credits_known && !after.unlimited);
	assert_int_equal(after.lsn, 12 + 1);
	expect_no_wc(dut);
	expect_silence(dut);
	assert_int_equal(after.unacked_psn, before.unacked_psn);
	assert_int_equal(after.next_psn, before.next_psn);
	assert_int_equal(after.in_flight, before.in_flight);
	assert_int_equal(after.counters[ENG_COUNT_UNSOLICITED_ACKS_RECEIVED], 1);
}

/* An unsolicited ACK completes nothing and leaves timer and retry counters alone. */
static void test_unsolicited_resets_no_retry(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .timeout_code = 8, .retry_count = 3 });
	uint64_t id, deadline;

	(void)state;
	/* rule C8 test */
	dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
	dut_forget(dut);
	dut_ack(dut, DUT_SQ_PSN, ACK_CODE(1), 1);
	dut->wc_read = dut->wc_count;
	id = dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
	dut_forget(dut);
	dut_advance_to_deadline(dut);
	expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN + 1);
	assert_int_equal(dut_info(dut).retries_left, 2);
	deadline = eng_deadline(dut->qp);
	dut->now += 100 * US;
	dut_ack(dut, DUT_SQ_PSN, ACK_CODE(9), 1);
	assert_int_equal(dut_info(dut).lsn, 1 + 24 + 1);
	assert_int_equal(dut_info(dut).retries_left, 2);
	assert_int_equal(eng_deadline(dut->qp), deadline);
	expect_silence(dut);
	expect_no_wc(dut);
	dut_ack(dut, DUT_SQ_PSN + 1, ACK_CODE(9), 2);
	expect_wc(dut, id, ENG_SUCCESS);
}

/* WRITE, READ and Atomic are sent without any credit. */
static void test_no_credit_needed(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });

	(void)state;
	/* rule C14 test */
	dut_ack(dut, DUT_SQ_PSN - 1, ACK_CODE(0), 0);
	dut_post(dut, ENG_WRITE, 2 * DUT_MTU, 0);
	dut_post(dut, ENG_READ, 2 * DUT_MTU, 0);
	dut_post(dut, ENG_COMPARE_SWAP, 8, 0);
	dut_post(dut, ENG_FETCH_ADD, 8, 0);
	expect_packet(dut, WIRE_WRITE_FIRST, DUT_SQ_PSN);
	expect_packet(dut, WIRE_WRITE_LAST, DUT_SQ_PSN + 1);
	expect_packet(dut, WIRE_READ_REQUEST, DUT_SQ_PSN + 2);
	expect_packet(dut, WIRE_COMPARE_SWAP, DUT_SQ_PSN + 4);
	expect_packet(dut, WIRE_FETCH_ADD, DUT_SQ_PSN + 5);
	expect_silence(dut);
	assert_int_equal(dut->why, ENG_TX_IDLE);
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_CREDIT_WAITS], 0);
}

/* No request overtakes a limited one, not even a request that needs no credit. */
static void test_nothing_overtakes_a_limited_request(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });

	(void)state;
	/* rule C15 test */
	dut_post(dut, ENG_SEND, 8, 0);
	dut_post(dut, ENG_WRITE, 8, 0);
	dut_post(dut, ENG_READ, 8, 0);
	assert_true(expect_packet(dut, WIRE_SEND_ONLY, DUT_SQ_PSN)->ack_request);
	expect_silence(dut);
	assert_int_equal(dut->why, ENG_TX_CREDIT);
	dut_ack(dut, DUT_SQ_PSN, ACK_CODE(0), 1);
	expect_packet(dut, WIRE_WRITE_ONLY, DUT_SQ_PSN + 1);
	expect_packet(dut, WIRE_READ_REQUEST, DUT_SQ_PSN + 2);
	expect_silence(dut);
}

/* Local operations are never sent, so the peer does not count them, and they use no credit. */
static void test_local_requests_eat_no_credit(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });
	uint32_t psn = DUT_SQ_PSN;

	(void)state;
	/* rule C11 test, rule C12 test */
	for (uint32_t round = 0; round < 5; round++, psn += 2) {
		dut_ack(dut, psn - 1, ACK_CODE(1), round);
		dut_post(dut, ENG_LOCAL_INV, 0, 0);
		dut_post(dut, ENG_SEND, 2 * DUT_MTU, 0);
		expect_packet(dut, WIRE_SEND_FIRST, psn);
		expect_packet(dut, WIRE_SEND_LAST, psn + 1);
		dut_ack(dut, psn + 1, ACK_CODE(0), round + 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DUT_TEST(test_example_of_the_rule),
		DUT_TEST(test_example_with_two_uncredited),
		DUT_TEST(test_uncredited_across_acks),
		DUT_TEST(test_stale_acks_do_not_move_back),
		DUT_TEST(test_ssn_counts_every_kind),
		DUT_TEST(test_msn_counts_every_kind),
		DUT_TEST(test_unlimited_peer),
		DUT_TEST(test_numbers_after_unlimited),
		DUT_TEST(test_unsolicited_after_a_nak),
		DUT_TEST(test_reported_credits_are_obeyed),
		DUT_TEST(test_initial_ghost_ack),
		DUT_TEST(test_unsolicited_resets_no_retry),
		DUT_TEST(test_no_credit_needed),
		DUT_TEST(test_nothing_overtakes_a_limited_request),
		DUT_TEST(test_local_requests_eat_no_credit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
