/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* The responder executes requests in PSN order and acknowledges them. */
#include "dut.h"

#include <string.h>

static struct dut *dut_with_receives(unsigned int count)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });

	for (unsigned int i = 0; i < count; i++)
		dut_post_recv_at(dut, 8192 * (i % 8), 8192);
	memset(dut->local, 0, DUT_REGION_BYTES);
	dut_forget(dut);
	return dut;
}

/* Packets with the expected PSN are executed; their payload is written to the receive buffer. */
static void test_expected_psn_is_executed(void **state)
{
	struct dut *dut = dut_with_receives(1);
	const struct eng_wc *wc;

	(void)state;
	/* rule S4 test, rule S6 test */
	dut_give_request(dut, WIRE_SEND_FIRST, DUT_RQ_PSN, DUT_MTU);
	dut_give_request(dut, WIRE_SEND_MIDDLE, DUT_RQ_PSN + 1, DUT_MTU);
	expect_no_wc(dut);
	struct wire_packet last = dut_request(dut, WIRE_SEND_LAST_IMM, DUT_RQ_PSN + 2, 5);
	last.solicited = true;
	dut_give(dut, &last);
	wc = expect_wc(dut, 0x2000, ENG_SUCCESS);
	assert_int_equal(wc->byte_len, 2 * DUT_MTU + 5);
	assert_int_equal(wc->immediate, 0xcafe0001);
	assert_int_equal(wc->flags, ENG_WC_IMMEDIATE);
	assert_true(wc->solicited && wc->receive);
	expect_pattern(dut->local, DUT_MTU, 0);
	expect_pattern(dut->local + DUT_MTU, DUT_MTU, 0);
	expect_pattern(dut->local + 2 * DUT_MTU, 5, 0);
	assert_int_equal(dut->local[2 * DUT_MTU + 5], 0);
	expect_ack(dut, DUT_RQ_PSN + 2, ACK_CODE(0), 1);
	expect_silence(dut);
}

/* The completion contains the kind of the message. */
static void test_kinds_of_receive_completion(void **state)
{
	struct dut *dut = dut_with_receives(4);
	const struct eng_wc *wc;

	(void)state;
	/* rule S6 test */
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN, 0);
	wc = expect_wc(dut, 0x2000, ENG_SUCCESS);
	assert_int_equal(wc->byte_len, 0);
	assert_int_equal(wc->flags, 0);
	assert_false(wc->solicited);
	dut_give_request(dut, WIRE_WRITE_ONLY_IMM, DUT_RQ_PSN + 1, 16);
	wc = expect_wc(dut, 0x2001, ENG_SUCCESS);
	assert_int_equal(wc->op, ENG_WRITE_IMM);
	assert_int_equal(wc->byte_len, 16);
	assert_int_equal(wc->flags, ENG_WC_IMMEDIATE);
	assert_int_equal(wc->immediate, 0xcafe0001);
	expect_pattern(dut->remote, 16, 0);
	assert_int_equal(dut->local[8192], 0);
	struct wire_packet inv = dut_request(dut, WIRE_SEND_ONLY_INVALIDATE, DUT_RQ_PSN + 2, 1);
	inv.invalidate_rkey = 0xabcd;
	dut_give(dut, &inv);
	wc = expect_wc(dut, 0x2002, ENG_SUCCESS);
	assert_int_equal(wc->flags, ENG_WC_INVALIDATED);
	assert_int_equal(wc->immediate, 0xabcd);
	assert_int_equal(dut->invalidated, 0xabcd);
}

/* Packets after the expected PSN get one NAK, with the expected PSN, and are not executed. */
static void test_gap_gets_one_nak(void **state)
{
	struct dut *dut = dut_with_receives(4);

	(void)state;
	/* rule S4 test */
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN + 1, 8);
	expect_ack(dut, DUT_RQ_PSN, NAK_SEQUENCE, 0);
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN + 2, 8);
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN + 3, 8);
	dut_give_read(dut, DUT_RQ_PSN + 0x7fffff, 0, 8);
	expect_silence(dut);
	expect_no_wc(dut);
	assert_int_equal(dut->remote[0], 0);
	assert_int_equal(dut_info(dut).credits_now, 4);
	/* The expected request ends the NAK state: the next hole leads to a NAK again. */
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN, 8);
	expect_ack(dut, DUT_RQ_PSN, ACK_CODE(3), 1);
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN + 2, 8);
	expect_ack(dut, DUT_RQ_PSN + 1, NAK_SEQUENCE, 1);
	expect_silence(dut);
}

/* The expected PSN arrives before the NAK is sent: the NAK has the PSN that is missing now. */
static void test_overtaken_nak_is_brought_up_to_date(void **state)
{
	struct dut *dut = dut_with_receives(4);

	(void)state;
	/* rule S4 test */
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN + 1, 8);
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN, 8);
	expect_ack(dut, DUT_RQ_PSN + 1, NAK_SEQUENCE, 1);
	/* When no request is missing any more, only an ACK is sent. */
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN + 1, 8);
	expect_ack(dut, DUT_RQ_PSN + 1, ACK_CODE(2), 2);
	expect_silence(dut);
}

/* A hole does not drop a pending ACK: the NAK acknowledges as much, or the ACK is sent. */
static void test_owed_ack_survives_a_gap(void **state)
{
	struct dut *dut = dut_with_receives(4);
	bool sequence_error = false;

	(void)state;
	/* rule S7 test */
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN, 8);
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN + 2, 8);
	struct wire_packet send = dut_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN + 1, 8);
	send.ack_request = false;
	dut_give(dut, &send);
	dut_pull(dut);
	for (; dut->sent_read < dut->sent_count; dut->sent_read++) {
		const struct wire_packet *packet = &dut->sent[dut->sent_read].packet;

		assert_int_equal(packet->opcode, WIRE_ACKNOWLEDGE);
		if (packet->syndrome == NAK_SEQUENCE)
			assert_int_equal(packet->psn, DUT_RQ_PSN + 2);
		else
			assert_uint_in_range(packet->psn, DUT_RQ_PSN, DUT_RQ_PSN + 1);
		sequence_error |= packet->syndrome == NAK_SEQUENCE;
	}
	/* The second request was dropped; its NAK also acknowledges the other two. */
	assert_true(sequence_error);
}

/* A duplicate is not executed again, but acknowledged with the newest executed PSN. */
static void test_duplicate_is_acknowledged_only(void **state)
{
	struct dut *dut = dut_with_receives(4);

	(void)state;
	/* rule S4 test */
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN, 8);
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN + 1, 8);
	expect_ack(dut, DUT_RQ_PSN + 1, ACK_CODE(3), 2);
	memset(dut->local, 0, DUT_REGION_BYTES);
	memset(dut->remote, 0, DUT_REGION_BYTES);
	dut->wc_read = dut->wc_count;
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN, 8);
	expect_ack(dut, DUT_RQ_PSN + 1, ACK_CODE(3), 2);
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN + 1, 8);
	expect_ack(dut, DUT_RQ_PSN + 1, ACK_CODE(3), 2);
	expect_silence(dut);
	expect_no_wc(dut);
	assert_int_equal(dut->local[0] + dut->local[8192] + dut->remote[0], 0);
	assert_int_equal(dut_info(dut).msn, 2);
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_DUPLICATE_REQUEST], 2);
	/* A PSN 2^23 before the expected one is still a duplicate. */
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN + 2 - 0x800000, 8);
	expect_no_wc(dut);
}

/*
 * A duplicate shows that the peer may have lost the ACK of the original.  It is acknowledged with
 * the newest executed PSN even if it has no AckReq.
 */
static void test_duplicate_without_ack_req(void **state)
{
	struct dut *dut = dut_with_receives(4);
	struct wire_packet requests[] = {
		dut_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN, 8),
		dut_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN + 1, 8),
	};

	(void)state;
	/* rule S4 test */
	for (int i = 0; i < 2; i++) {
		requests[i].ack_request = false;
		dut_give(dut, &requests[i]);
	}
	expect_wc(dut, 0x2000, ENG_SUCCESS);
	dut_forget(dut);
	memset(dut->local, 0, DUT_REGION_BYTES);
	memset(dut->remote, 0, DUT_REGION_BYTES);
	for (int i = 0; i < 2; i++) {
		dut_give(dut, &requests[i]);
		expect_ack(dut, DUT_RQ_PSN + 1, ACK_CODE(3), 2);
		expect_silence(dut);
	}
	expect_no_wc(dut);
	assert_int_equal(dut->local[0] + dut->local[8192] + dut->remote[0], 0);
}

/* A duplicate in the middle of a message does not disturb it. */
static void test_duplicate_inside_a_message(void **state)
{
	struct dut *dut = dut_with_receives(1);

	(void)state;
	/* rule S4 test */
	dut_give_request(dut, WIRE_SEND_FIRST, DUT_RQ_PSN, DUT_MTU);
	dut_give_request(dut, WIRE_SEND_FIRST, DUT_RQ_PSN, DUT_MTU);
	dut_give_request(dut, WIRE_SEND_MIDDLE, DUT_RQ_PSN + 1, DUT_MTU);
	dut_give_request(dut, WIRE_SEND_MIDDLE, DUT_RQ_PSN + 1, DUT_MTU);
	dut_give_request(dut, WIRE_SEND_LAST, DUT_RQ_PSN + 2, 1);
	assert_int_equal(expect_wc(dut, 0x2000, ENG_SUCCESS)->byte_len, 2 * DUT_MTU + 1);
	dut_give_request(dut, WIRE_SEND_LAST, DUT_RQ_PSN + 2, 1);
	expect_no_wc(dut);
	assert_int_equal(dut_info(dut).expected_psn, DUT_RQ_PSN + 3);
}

/* PSNs wrap in the middle of a message. */
static void test_psn_wrap(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .rq_psn = 0xfffffe });
	uint64_t recv = dut_post_recv(dut, 8192);

	(void)state;
	/* rule S2 test, rule S4 test */
	dut_forget(dut);
	dut_give_request(dut, WIRE_SEND_FIRST, 0xfffffe, DUT_MTU);
	dut_give_request(dut, WIRE_SEND_LAST, 0x000001, 8);
	expect_ack(dut, 0xffffff, NAK_SEQUENCE, 0);
	dut_give_request(dut, WIRE_SEND_MIDDLE, 0xffffff, DUT_MTU);
	dut_give_request(dut, WIRE_SEND_MIDDLE, 0x000000, DUT_MTU);
	dut_give_request(dut, WIRE_SEND_MIDDLE, 0xffffff, DUT_MTU);
	dut_give_request(dut, WIRE_SEND_LAST, 0x000001, 8);
	expect_wc(dut, recv, ENG_SUCCESS);
	expect_ack(dut, 0x000001, ACK_CODE(0), 1);
	expect_silence(dut);
}

/* ACKs that are pending together are coalesced into that of the newest request. */
static void test_acks_are_coalesced(void **state)
{
	struct dut *dut = dut_with_receives(6);

	(void)state;
	/* rule S7 test */
	for (uint32_t i = 0; i < 4; i++)
		dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN + i, 8);
	assert_int_not_equal(eng_resp_pending(dut->qp), ENG_RESP_NONE);
	expect_ack(dut, DUT_RQ_PSN + 3, ACK_CODE(2), 4);
	expect_silence(dut);
	assert_int_equal(eng_resp_pending(dut->qp), ENG_RESP_NONE);
	/* Requests with AckReq that are received one by one are acknowledged one by one. */
	for (uint32_t i = 4; i < 6; i++) {
		dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN + i, 8);
		expect_ack(dut, DUT_RQ_PSN + i, ACK_CODE(2), i + 1);
	}
	expect_silence(dut);
}

/* The ACK of requests before a READ is sent before its responses, that of later ones after them. */
static void test_order_of_acks_and_responses(void **state)
{
	struct dut *dut = dut_with_receives(0);

	(void)state;
	/* rule S7 test */
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN, 8);
	dut_give_read(dut, DUT_RQ_PSN + 1, 0, 2 * DUT_MTU);
	expect_ack(dut, DUT_RQ_PSN, ACK_CODE(0), 2);
	expect_packet(dut, WIRE_READ_RESPONSE_FIRST, DUT_RQ_PSN + 1);
	expect_packet(dut, WIRE_READ_RESPONSE_LAST, DUT_RQ_PSN + 2);
	expect_silence(dut);
	dut_give_read(dut, DUT_RQ_PSN + 3, 0, 8);
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN + 4, 8);
	expect_packet(dut, WIRE_READ_RESPONSE_ONLY, DUT_RQ_PSN + 3);
	expect_ack(dut, DUT_RQ_PSN + 4, ACK_CODE(0), 4);
	expect_silence(dut);
}

/* Requests are executed and acknowledged in RTR already, but not in RESET or INIT. */
static void test_responder_works_in_rtr(void **state)
{
	struct dut *dut = dut_new((struct dut_config){ 0 });
	uint64_t recv;

	(void)state;
	/* rule S7 test */
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN, 8);
	dut_raise(dut, ENG_INIT);
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN, 8);
	expect_silence(dut);
	dut_raise(dut, ENG_RTR);
	recv = dut_post_recv(dut, 64);
	dut_forget(dut);
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN, 8);
	expect_ack(dut, DUT_RQ_PSN, ACK_CODE(0), 1);
	expect_wc(dut, recv, ENG_SUCCESS);
}

/* Takes a burst of responses and rolls it back, as if the socket buffer were full. */
static void take_back_responses(struct dut *dut)
{
	struct eng_burst burst = dut_empty_burst(dut, 1);

	assert_int_equal(dut_transmit(dut, &burst, ENG_RESPONSES), ENG_TX_BURST);
	eng_tx_rollback(dut->qp, &burst);
}

/* An RNR NAK was not sent and is no longer needed: the pending ACK that it included is sent. */
static void test_ack_behind_a_nak_that_never_went(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });
	struct wire_packet send = dut_request(dut, WIRE_SEND_FIRST, DUT_RQ_PSN + 1, DUT_MTU);

	(void)state;
	/* rule S7 test, rule S11 test */
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN, 8);
	send.ack_request = false;
	dut_give(dut, &send);
	take_back_responses(dut);
	dut_post_recv(dut, 2 * DUT_MTU);
	dut_give(dut, &send);
	expect_ack(dut, DUT_RQ_PSN + 1, ACK_CODE(0), 1);
	expect_silence(dut);
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_SENT_RNR], 0);
}

/* A request arrives twice before its RNR NAK is sent: one NAK is sent, and counted once. */
static void test_rnr_naks_count_when_they_are_sent(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });

	(void)state;
	for (int i = 0; i < 2; i++)
		dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN, 8);
	expect_ack(dut, DUT_RQ_PSN, RNR_NAK(12), 0);
	expect_silence(dut);
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_SENT_RNR], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DUT_TEST(test_expected_psn_is_executed),
		DUT_TEST(test_kinds_of_receive_completion),
		DUT_TEST(test_gap_gets_one_nak),
		DUT_TEST(test_overtaken_nak_is_brought_up_to_date),
		DUT_TEST(test_owed_ack_survives_a_gap),
		DUT_TEST(test_duplicate_is_acknowledged_only),
		DUT_TEST(test_duplicate_without_ack_req),
		DUT_TEST(test_duplicate_inside_a_message),
		DUT_TEST(test_psn_wrap),
		DUT_TEST(test_acks_are_coalesced),
		DUT_TEST(test_order_of_acks_and_responses),
		DUT_TEST(test_responder_works_in_rtr),
		DUT_TEST(test_ack_behind_a_nak_that_never_went),
		DUT_TEST(test_rnr_naks_count_when_they_are_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
