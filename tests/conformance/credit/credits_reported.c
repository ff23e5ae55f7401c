/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* The responder reports how many receive WQEs are free. */
#include "dut.h"

#include <string.h>

/* Every kind of positive response carries the credit count and the MSN. */
static void test_every_positive_response_reports(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });
	const struct wire_packet *packet;

	(void)state;
	for (int i = 0; i < 6; i++)
		dut_post_recv(dut, 64);
	dut_forget(dut);
	/* rule C2 test */
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN, 16);
	expect_ack(dut, DUT_RQ_PSN, ACK_CODE(5), 1);
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN + 1, 16);
	expect_ack(dut, DUT_RQ_PSN + 1, ACK_CODE(4), 2); /* five, rounded down to four */
	dut_give_read(dut, DUT_RQ_PSN + 2, 0, 3 * DUT_MTU);
	packet = expect_packet(dut, WIRE_READ_RESPONSE_FIRST, DUT_RQ_PSN + 2);
	assert_int_equal(packet->syndrome, ACK_CODE(4));
	assert_int_equal(packet->msn, 3);
	expect_packet(dut, WIRE_READ_RESPONSE_MIDDLE, DUT_RQ_PSN + 3);
	packet = expect_packet(dut, WIRE_READ_RESPONSE_LAST, DUT_RQ_PSN + 4);
	assert_int_equal(packet->syndrome, ACK_CODE(4));
	assert_int_equal(packet->msn, 3);
	dut_give_read(dut, DUT_RQ_PSN + 5, 0, 8);
	packet = expect_packet(dut, WIRE_READ_RESPONSE_ONLY, DUT_RQ_PSN + 5);
	assert_int_equal(packet->syndrome, ACK_CODE(4));
	assert_int_equal(packet->msn, 4);
	dut_give_atomic(dut, WIRE_FETCH_ADD, DUT_RQ_PSN + 6, 0, 0, 1);
	packet = expect_packet(dut, WIRE_ATOMIC_ACKNOWLEDGE, DUT_RQ_PSN + 6);
	assert_int_equal(packet->syndrome, ACK_CODE(4));
	assert_int_equal(packet->msn, 5);
	expect_silence(dut);
}

/* The credit code never reports more receive WQEs than there are: it is rounded down. */
static void test_encoding_never_promises_more(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .rq_slots = 256 });

	(void)state;
	/* rule C4 test */
	for (uint32_t posted = 1; posted <= 200; posted++) {
		uint32_t expected = 0, value;

		for (unsigned int code = 1; code < 31; code++) {
			value = code < 4 ? code : (2u + (code & 1)) << (code / 2 - 1);
			if (value <= posted)
				expected = code;
		}
		dut_post_recv(dut, 64);
		dut_forget(dut);
		dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN + posted - 1, 0);
		expect_ack(dut, DUT_RQ_PSN + posted - 1, ACK_CODE(expected), posted);
		assert_int_equal(dut_info(dut).credits_now, posted);
	}
}

/* Receives are counted from INIT on, and a request that takes one decrements the count at once. */
static void test_count_follows_the_receive_queue(void **state)
{
	struct dut *dut = dut_new((struct dut_config){ 0 });

	(void)state;
	/* rule C5 test */
	assert_int_equal(dut_info(dut).credits_now, 0);
	dut_set_state(dut, ENG_INIT);
	dut_post_recv(dut, 4096);
	assert_int_equal(dut_info(dut).credits_now, 1);
	dut_set_state(dut, ENG_RTR);
	dut_post_recv(dut, 4096);
	assert_int_equal(dut_info(dut).credits_now, 2);
	dut_set_state(dut, ENG_RTS);
	dut_post_recv(dut, 4096);
	assert_int_equal(dut_info(dut).credits_now, 3);
	dut_forget(dut);

	/* A SEND takes a WQE with its first packet; the ACK of that packet reports one less. */
	dut_give_request(dut, WIRE_SEND_FIRST, DUT_RQ_PSN, DUT_MTU);
	expect_ack(dut, DUT_RQ_PSN, ACK_CODE(2), 0);
	assert_int_equal(dut_info(dut).credits_now, 2);
	dut_give_request(dut, WIRE_SEND_LAST, DUT_RQ_PSN + 1, 4);
	expect_ack(dut, DUT_RQ_PSN + 1, ACK_CODE(2), 1);

	/* A WRITE with immediate takes a WQE with its last packet. */
	struct wire_packet first = dut_request(dut, WIRE_WRITE_FIRST, DUT_RQ_PSN + 2, DUT_MTU);
	first.dma_length = DUT_MTU + 8;
	dut_give(dut, &first);
	expect_ack(dut, DUT_RQ_PSN + 2, ACK_CODE(2), 1);
	dut_give_request(dut, WIRE_WRITE_LAST_IMM, DUT_RQ_PSN + 3, 8);
	expect_ack(dut, DUT_RQ_PSN + 3, ACK_CODE(1), 2);
	dut_give_request(dut, WIRE_WRITE_ONLY_IMM, DUT_RQ_PSN + 4, 8);
	expect_ack(dut, DUT_RQ_PSN + 4, ACK_CODE(0), 3);

	dut_post_recv(dut, 64);
	dut_set_state(dut, ENG_RESET);
	assert_int_equal(dut_info(dut).credits_now, 0);
}

static void expect_rnr(struct dut *dut, uint32_t psn, uint32_t msn)
{
	expect_ack(dut, psn, RNR_NAK(12), msn);
	expect_silence(dut);
	expect_no_wc(dut);
	assert_int_equal(dut_info(dut).expected_psn, psn);
}

/* Without a receive WQE: RNR NAK with our timer, nothing executed, nothing consumed. */
static void test_no_receive_is_rnr(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });
	uint64_t recv;

	(void)state;
	/* rule C6 test */
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN, 8);
	expect_rnr(dut, DUT_RQ_PSN, 0);
	dut_give_request(dut, WIRE_SEND_FIRST, DUT_RQ_PSN, DUT_MTU);
	expect_rnr(dut, DUT_RQ_PSN, 0);
	dut_give_request(dut, WIRE_WRITE_ONLY_IMM, DUT_RQ_PSN, 8);
	expect_rnr(dut, DUT_RQ_PSN, 0);
	assert_int_equal(dut->remote[0], 0);

	/* A request that needs no receive is executed. */
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN, 8);
	expect_ack(dut, DUT_RQ_PSN, ACK_CODE(0), 1);
	expect_pattern(dut->remote, 8, 0);

	/* A long WRITE with immediate needs the WQE for its last packet only. */
	struct wire_packet first = dut_request(dut, WIRE_WRITE_FIRST, DUT_RQ_PSN + 1, DUT_MTU);
	first.dma_length = DUT_MTU + 8;
	dut_give(dut, &first);
	expect_ack(dut, DUT_RQ_PSN + 1, ACK_CODE(0), 1);
	dut_give_request(dut, WIRE_WRITE_LAST_IMM, DUT_RQ_PSN + 2, 8);
	expect_rnr(dut, DUT_RQ_PSN + 2, 1);

	/* The same packet is executed after a receive has been posted. */
	recv = dut_post_recv(dut, 64);
	dut_forget(dut);
	dut_give_request(dut, WIRE_WRITE_LAST_IMM, DUT_RQ_PSN + 2, 8);
	expect_ack(dut, DUT_RQ_PSN + 2, ACK_CODE(0), 2);
	expect_wc(dut, recv, ENG_SUCCESS);
}

/* A QP with an SRQ cannot report credits: always 11111b, and never an unsolicited ACK. */
static void test_shared_receive_queue_reports_nothing(void **state)
{
	struct dut *dut = dut_new((struct dut_config){ .shared = true });

	(void)state;
	/* rule C7 test */
	dut_set_state(dut, ENG_INIT);
	dut_post_recv(dut, 64);
	dut_raise(dut, ENG_RTS);
	expect_silence(dut);
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN, 8);
	expect_ack(dut, DUT_RQ_PSN, NO_CREDITS_REPORTED, 1);
	dut_post_recv(dut, 64);
	dut_post_recv(dut, 64);
	expect_silence(dut);
	assert_int_equal(eng_resp_pending(dut->qp), ENG_RESP_NONE);
	dut_give_read(dut, DUT_RQ_PSN + 1, 0, 8);
	assert_int_equal(expect_packet(dut, WIRE_READ_RESPONSE_ONLY, DUT_RQ_PSN + 1)->syndrome,
			 NO_CREDITS_REPORTED);
}

/* credits_hidden: a QP with a receive queue of its own reports no credits; RNR NAKs still work. */
static void test_hidden_credits(void **state)
{
	struct dut *dut = dut_new((struct dut_config){ .credits_hidden = true });

	(void)state;
	/* rule C2 test, rule C10 test */
	dut_set_state(dut, ENG_INIT);
	dut_post_recv(dut, 64);
	dut_raise(dut, ENG_RTS);
	expect_silence(dut);
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN, 8);
	expect_ack(dut, DUT_RQ_PSN, NO_CREDITS_REPORTED, 1);
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN + 1, 8);
	expect_ack(dut, DUT_RQ_PSN + 1, RNR_NAK(12), 1);
	dut_post_recv(dut, 64);
	expect_silence(dut);
}

/* An unsolicited ACK repeats the last positive response of any kind, as a plain Acknowledge. */
static void test_unsolicited_repeats_last_positive(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });

	(void)state;
	/* rule C8 test */
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN, 8);
	expect_ack(dut, DUT_RQ_PSN, ACK_CODE(0), 1);
	expect_silence(dut);
	dut_post_recv(dut, 64);
	assert_int_equal(eng_resp_pending(dut->qp), ENG_RESP_IMMEDIATE);
	expect_ack(dut, DUT_RQ_PSN, ACK_CODE(1), 1);
	expect_silence(dut);
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN + 1, 8);
	expect_ack(dut, DUT_RQ_PSN + 1, ACK_CODE(0), 2);

	/* After a READ response: the PSN of its last packet, to a peer that reports credits. */
	dut_ack(dut, DUT_SQ_PSN - 1, ACK_CODE(5), 0);
	dut_give_read(dut, DUT_RQ_PSN + 2, 0, 3 * DUT_MTU);
	expect_packet(dut, WIRE_READ_RESPONSE_FIRST, DUT_RQ_PSN + 2);
	expect_packet(dut, WIRE_READ_RESPONSE_MIDDLE, DUT_RQ_PSN + 3);
	expect_packet(dut, WIRE_READ_RESPONSE_LAST, DUT_RQ_PSN + 4);
	dut_post_recv(dut, 64);
	expect_ack(dut, DUT_RQ_PSN + 4, ACK_CODE(1), 3);
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN + 5, 8);
	expect_ack(dut, DUT_RQ_PSN + 5, ACK_CODE(0), 4);

	/* After an Atomic. */
	dut_give_atomic(dut, WIRE_COMPARE_SWAP, DUT_RQ_PSN + 6, 64, 0, 5);
	expect_packet(dut, WIRE_ATOMIC_ACKNOWLEDGE, DUT_RQ_PSN + 6);
	dut_post_recv(dut, 64);
	expect_ack(dut, DUT_RQ_PSN + 6, ACK_CODE(1), 5);
	expect_silence(dut);
}

/*
 * A peer that reports no credits may take an Acknowledge with the PSN of a READ or Atomic for its
 * response, which may have been lost.  So it gets no unsolicited ACK with such a PSN, whether it
 * has sent credit code 11111b or no AETH at all; the next ACK of a request reports the credits.
 */
static void check_no_ack_for_an_answer(bool told, bool atomic)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });

	if (told)
		dut_ack(dut, DUT_SQ_PSN - 1, ACK_CODE(31), 0);
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN, 8);
	expect_ack(dut, DUT_RQ_PSN, ACK_CODE(0), 1);
	if (atomic) {
		dut_give_atomic(dut, WIRE_COMPARE_SWAP, DUT_RQ_PSN + 1, 64, 0, 5);
		expect_packet(dut, WIRE_ATOMIC_ACKNOWLEDGE, DUT_RQ_PSN + 1);
	} else {
		dut_give_read(dut, DUT_RQ_PSN + 1, 0, 8);
		expect_packet(dut, WIRE_READ_RESPONSE_ONLY, DUT_RQ_PSN + 1);
	}
	dut_post_recv(dut, 64);
	dut_post_recv(dut, 64);
	assert_int_equal(eng_resp_pending(dut->qp), ENG_RESP_NONE);
	expect_silence(dut);
	eng_send_final_acks(dut->qp);
	expect_silence(dut);
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN + 2, 8);
	expect_ack(dut, DUT_RQ_PSN + 2, ACK_CODE(1), 3);
	dut_teardown(NULL);
}

static void test_no_ack_for_an_answer(void **state)
{
	(void)state;
	/* rule C10 test */
	for (unsigned int i = 0; i < 4; i++)
		check_no_ack_for_an_answer(i & 1, i & 2);
}

/* An unsolicited ACK repeats the last ACK sent, and does not acknowledge later requests. */
static void test_unsolicited_acknowledges_nothing_new(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });
	struct wire_packet write = dut_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN + 1, 8);

	(void)state;
	/* rule C8 test */
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN, 8);
	expect_ack(dut, DUT_RQ_PSN, ACK_CODE(0), 1);
	write.ack_request = false;
	dut_give(dut, &write);
	expect_silence(dut);
	dut_post_recv(dut, 64);
	expect_ack(dut, DUT_RQ_PSN, ACK_CODE(1), 2);
	expect_silence(dut);
}

/* A NAK is never repeated: an unsolicited ACK has the PSN of the last positive response. */
static void test_unsolicited_is_no_copy_of_a_nak(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });

	(void)state;
	/* rule C8 test */
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN, 8);
	expect_ack(dut, DUT_RQ_PSN, ACK_CODE(0), 1);
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN + 1, 8);
	expect_ack(dut, DUT_RQ_PSN + 1, RNR_NAK(12), 1);
	dut_post_recv(dut, 64);
	expect_ack(dut, DUT_RQ_PSN, ACK_CODE(1), 1);
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN + 1, 8);
	expect_ack(dut, DUT_RQ_PSN + 1, ACK_CODE(0), 2);

	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN + 4, 8);
	expect_ack(dut, DUT_RQ_PSN + 2, NAK_SEQUENCE, 2);
	dut_post_recv(dut, 64);
	expect_ack(dut, DUT_RQ_PSN + 1, ACK_CODE(1), 2);
	expect_silence(dut);
}

/* Initial credits: on reaching RTR with receives posted, PSN = ePSN - 1 and MSN 0. */
static void test_initial_credits_at_rtr(void **state)
{
	struct dut *dut = dut_new((struct dut_config){ .psn_zero = true });

	(void)state;
	/* rule C9 test: for example, ePSN 000000h gives PSN FFFFFFh. */
	dut_set_state(dut, ENG_INIT);
	dut_post_recv(dut, 64);
	dut_post_recv(dut, 64);
	expect_silence(dut);
	dut_set_state(dut, ENG_RTR);
	assert_int_equal(eng_resp_pending(dut->qp), ENG_RESP_IMMEDIATE);
	expect_ack(dut, 0xffffff, ACK_CODE(2), 0);
	expect_silence(dut);
	dut_set_state(dut, ENG_RTS);
	expect_silence(dut);
}

/* Initial credits: receives posted in RTR or RTS before any request was answered. */
static void test_initial_credits_later(void **state)
{
	for (int in_rts = 0; in_rts < 2; in_rts++) {
		struct dut *dut = dut_new((struct dut_config){ 0 });

		(void)state;
		/* rule C9 test */
		dut_raise(dut, in_rts ? ENG_RTS : ENG_RTR);
		expect_silence(dut);
		dut_post_recv(dut, 64);
		assert_int_equal(eng_resp_pending(dut->qp), ENG_RESP_IMMEDIATE);
		expect_ack(dut, DUT_RQ_PSN - 1, ACK_CODE(1), 0);
		expect_silence(dut);
	}
}

/* A sender without credits gets updates without sending a request, whenever receives are posted. */
static void test_idle_sender_gets_credits(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });

	(void)state;
	/* rule C10 test, rule U2 test */
	for (uint32_t i = 0; i < 20; i++) {
		uint32_t last = i ? DUT_RQ_PSN + i - 1 : DUT_RQ_PSN - 1;

		expect_silence(dut);
		dut_post_recv(dut, 64);
		expect_ack(dut, last, ACK_CODE(1), i);
		dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN + i, 8);
		expect_ack(dut, DUT_RQ_PSN + i, ACK_CODE(0), i + 1);
	}
	assert_int_equal(dut_info(dut).counters[ENG_COUNT_UNSOLICITED_ACKS_SENT], 20);
}

/* A hundred receives posted one by one cause at most ten unsolicited ACKs, not one each. */
static void test_not_one_ack_per_receive(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .rq_slots = 256 });
	uint32_t credits = 0;

	(void)state;
	/* rule C10 test */
	for (int i = 0; i < 100; i++) {
		dut_post_recv(dut, 64);
		dut_pull(dut);
	}
	assert_uint_in_range(dut->sent_count, 1, 10);
	for (unsigned int i = 0; i < dut->sent_count; i++) {
		const struct wire_packet *packet = &dut->sent[i].packet;

		assert_int_equal(packet->opcode, WIRE_ACKNOWLEDGE);
		assert_int_equal(packet->psn, DUT_RQ_PSN - 1);
		assert_true(packet->syndrome > credits && packet->syndrome < 31);
		credits = packet->syndrome;
	}
	/* Posted together they cause one. */
	dut = dut_rts((struct dut_config){ .rq_slots = 256 });
	for (int i = 0; i < 100; i++)
		dut_post_recv(dut, 64);
	expect_ack(dut, DUT_RQ_PSN - 1, ACK_CODE(13), 0);
	expect_silence(dut);
}

/* A peer with few credits gets an unsolicited ACK as well, not only a peer with none. */
static void test_news_below_the_low_water_mark(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .rq_slots = 256 });

	(void)state;
	/* rule C10 test */
	for (int i = 0; i < 3; i++)
		dut_post_recv(dut, 64);
	expect_ack(dut, DUT_RQ_PSN - 1, ACK_CODE(3), 0);
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN, 8);
	expect_ack(dut, DUT_RQ_PSN, ACK_CODE(2), 1);
	for (int i = 0; i < 126; i++)
		dut_post_recv(dut, 64);
	expect_ack(dut, DUT_RQ_PSN, ACK_CODE(14), 1);
	expect_silence(dut);
}

/* A peer with many credits gets no unsolicited ACK while receives are replaced. */
static void test_no_news_while_there_is_plenty(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .rq_slots = 64 });

	(void)state;
	/* rule C10 test */
	for (int i = 0; i < 64; i++)
		dut_post_recv(dut, 64);
	dut_forget(dut);
	for (uint32_t i = 0; i < 50; i++) {
		dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN + i, 8);
		expect_ack(dut, DUT_RQ_PSN + i, ACK_CODE(11), i + 1);
		dut_post_recv(dut, 64);
		expect_silence(dut);
	}
}

/* Requests without AckReq use up credits although no ACK reports it; the peer gets an update. */
static void test_credits_used_by_silent_requests(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });
	bool told = false;

	(void)state;
	/* rule C10 test */
	dut_post_recv(dut, 64);
	dut_post_recv(dut, 64);
	dut_forget(dut);
	for (uint32_t i = 0; i < 2; i++) {
		struct wire_packet send = dut_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN + i, 8);

		send.ack_request = false;
		dut_give(dut, &send);
	}
	dut_pull(dut);
	for (int i = 0; i < 8; i++)
		dut_post_recv(dut, 64);
	dut_advance(dut, 100 * MS);
	for (; dut->sent_read < dut->sent_count; dut->sent_read++) {
		const struct wire_packet *packet = &dut->sent[dut->sent_read].packet;

		assert_int_equal(packet->opcode, WIRE_ACKNOWLEDGE);
		told |= packet->msn == 2 && packet->syndrome == ACK_CODE(6);
	}
	assert_true(told);
}

/* A NAK has an MSN but no credits; receives posted after it are reported by an unsolicited ACK. */
static void test_credits_after_lost_window(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });

	(void)state;
	/*
	 * rule C10 test: a sender that has received an RNR NAK gets the update at once, not after
	 * its timer.
	 */
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN, 8);
	expect_ack(dut, DUT_RQ_PSN, RNR_NAK(12), 0);
	dut_post_recv(dut, 64);
	expect_ack(dut, DUT_RQ_PSN - 1, ACK_CODE(1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DUT_TEST(test_every_positive_response_reports),
		DUT_TEST(test_encoding_never_promises_more),
		DUT_TEST(test_count_follows_the_receive_queue),
		DUT_TEST(test_no_receive_is_rnr),
		DUT_TEST(test_shared_receive_queue_reports_nothing),
		DUT_TEST(test_hidden_credits),
		DUT_TEST(test_unsolicited_repeats_last_positive),
		DUT_TEST(test_no_ack_for_an_answer),
		DUT_TEST(test_unsolicited_acknowledges_nothing_new),
		DUT_TEST(test_unsolicited_is_no_copy_of_a_nak),
		DUT_TEST(test_initial_credits_at_rtr),
		DUT_TEST(test_initial_credits_later),
		DUT_TEST(test_idle_sender_gets_credits),
		DUT_TEST(test_not_one_ack_per_receive),
		DUT_TEST(test_news_below_the_low_water_mark),
		DUT_TEST(test_no_news_while_there_is_plenty),
		DUT_TEST(test_credits_used_by_silent_requests),
		DUT_TEST(test_credits_after_lost_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
