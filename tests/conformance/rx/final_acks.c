/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Final ACKs of a queue pair that is destroyed or fails, for a peer whose last ACK was lost. */
#include "dut.h"

#define FINAL_ACKS 3

/* Three unsolicited ACKs with the PSN of the last positive response are sent, and no more. */
static void test_final_acks(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });

	(void)state;
	/* rule C8 test */
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN, 8);
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN + 1, 8);
	expect_ack(dut, DUT_RQ_PSN + 1, ACK_CODE(0), 2);
	expect_silence(dut);
	eng_send_final_acks(dut->qp);
	assert_int_equal(eng_resp_pending(dut->qp), ENG_RESP_IMMEDIATE);
	for (int i = 0; i < FINAL_ACKS; i++)
		expect_ack(dut, DUT_RQ_PSN + 1, ACK_CODE(0), 2);
	expect_silence(dut);
	assert_int_equal(eng_resp_pending(dut->qp), ENG_RESP_NONE);
}

/* Final ACKs that the transport did not accept are sent again, and counted only once. */
static void test_final_acks_unsent(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });
	struct eng_burst burst = dut_empty_burst(dut, DUT_BURST_PACKETS);

	(void)state;
	/* rule C8 test */
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN, 8);
	expect_ack(dut, DUT_RQ_PSN, ACK_CODE(0), 1);
	eng_send_final_acks(dut->qp);
	assert_int_equal(dut_transmit(dut, &burst, ENG_RESPONSES), ENG_TX_BURST);
	eng_tx_rollback(dut->qp, &burst);
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_UNSOLICITED_ACKS_SENT], 0);
	for (int i = 0; i < FINAL_ACKS; i++)
		expect_ack(dut, DUT_RQ_PSN, ACK_CODE(0), 1);
	expect_silence(dut);
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_UNSOLICITED_ACKS_SENT], FINAL_ACKS);
}

/* A pending ACK is sent before the final ACKs, so that these cover all requests. */
static void test_final_acks_cover_owed_ack(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });
	unsigned int acks = 0;

	(void)state;
	/* rule S7 test, rule C8 test */
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN, 8);
	dut_forget(dut);
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN + 1, 8);
	eng_send_final_acks(dut->qp);
	dut_pull(dut);
	for (; dut->sent_read < dut->sent_count; dut->sent_read++, acks++)
		assert_int_equal(dut->sent[dut->sent_read].packet.psn, DUT_RQ_PSN + 1);
	assert_uint_in_range(acks, FINAL_ACKS, FINAL_ACKS + 1);
}

/* Packets without AckReq are acknowledged now, because later no ACK can be requested. */
static void test_final_acks_cover_unrequested(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });
	struct wire_packet write = dut_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN, 8);

	(void)state;
	/* rule S7 test, rule C8 test */
	write.ack_request = false;
	dut_give(dut, &write);
	expect_silence(dut);
	eng_send_final_acks(dut->qp);
	for (int i = 0; i < 1 + FINAL_ACKS; i++)
		expect_ack(dut, DUT_RQ_PSN, ACK_CODE(0), 1);
	expect_silence(dut);
}

/* No final ACKs if nothing was received, if the QP has failed, or on UC. */
static void test_no_final_acks(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });

	(void)state;
	/* rule C8 test */
	eng_send_final_acks(dut->qp);
	expect_silence(dut);
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN, 8);
	dut_forget(dut);
	dut_set_state(dut, ENG_ERR);
	eng_send_final_acks(dut->qp);
	expect_silence(dut);
	dut = dut_rts((struct dut_config){ .type = ENG_UC });
	dut_give_request(dut, WIRE_UC | WIRE_WRITE_ONLY, DUT_RQ_PSN, 8);
	eng_send_final_acks(dut->qp);
	expect_silence(dut);
}

/* After a NAK the final ACKs repeat the last positive response. */
static void test_final_acks_are_no_naks(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });

	(void)state;
	/* rule C8 test */
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN, 8);
	expect_ack(dut, DUT_RQ_PSN, ACK_CODE(0), 1);
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN + 1, 8);
	expect_ack(dut, DUT_RQ_PSN + 1, RNR_NAK(12), 1);
	eng_send_final_acks(dut->qp);
	for (int i = 0; i < FINAL_ACKS; i++)
		expect_ack(dut, DUT_RQ_PSN, ACK_CODE(0), 1);
	expect_silence(dut);
}

/* A QP whose own request fails acknowledges executed requests, whether they had AckReq or not. */
static void test_failure_acknowledges_what_came(void **state)
{
	(void)state;
	/* rule S7 test, rule S13 test */
	for (int asked = 0; asked < 2; asked++) {
		struct dut *dut = dut_rts((struct dut_config){ 0 });
		struct wire_packet write = dut_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN, 8);

		write.ack_request = asked;
		dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
		dut_forget(dut);
		dut_give(dut, &write);
		dut_nak(dut, DUT_SQ_PSN, NAK_ACCESS, 1);
		assert_int_equal(eng_qp_state(dut->qp), ENG_ERR);
		expect_ack(dut, DUT_RQ_PSN, ACK_CODE(0), 1);
		expect_silence(dut);
	}
}

/* No ACK if a READ response is missing: the peer would take it for an implied NAK of the READ. */
static void test_failure_acknowledges_no_read(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });

	(void)state;
	/* rule S13 test */
	dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
	dut_forget(dut);
	dut_give_read(dut, DUT_RQ_PSN, 0, 8);
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN + 1, 8);
	dut_nak(dut, DUT_SQ_PSN, NAK_ACCESS, 1);
	assert_int_equal(eng_qp_state(dut->qp), ENG_ERR);
	expect_silence(dut);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DUT_TEST(test_final_acks),
		DUT_TEST(test_final_acks_unsent),
		DUT_TEST(test_final_acks_cover_owed_ack),
		DUT_TEST(test_final_acks_cover_unrequested),
		DUT_TEST(test_no_final_acks),
		DUT_TEST(test_final_acks_are_no_naks),
		DUT_TEST(test_failure_acknowledges_what_came),
		DUT_TEST(test_failure_acknowledges_no_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
