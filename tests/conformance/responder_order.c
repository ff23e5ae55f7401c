/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* The responder takes requests in PSN order and in the order of the checks. */
#include "peer.h"

#include <string.h>

static struct peer *peer_with_receives(unsigned int count)
{
	struct peer *peer = peer_rts((struct peer_config){ 0 });

	for (unsigned int i = 0; i < count; i++)
		peer_post_recv_at(peer, 8192 * (i % 8), 8192);
	memset(peer->local, 0, PEER_REGION_BYTES);
	peer_forget(peer);
	return peer;
}

/* The expected PSN is executed; its message lands in the receive buffer. */
static void test_expected_psn_is_executed(void **state)
{
	struct peer *peer = peer_with_receives(1);
	const struct eng_wc *wc;

	(void)state;
	/* rule S4 test, rule S6 test */
	peer_give_request(peer, WIRE_SEND_FIRST, PEER_RQ_PSN, PEER_MTU);
	peer_give_request(peer, WIRE_SEND_MIDDLE, PEER_RQ_PSN + 1, PEER_MTU);
	expect_no_wc(peer);
	struct wire_packet last = peer_request(peer, WIRE_SEND_LAST_IMM, PEER_RQ_PSN + 2, 5);
	last.solicited = true;
	peer_give(peer, &last);
	wc = expect_wc(peer, 0x2000, ENG_SUCCESS);
	assert_int_equal(wc->byte_len, 2 * PEER_MTU + 5);
	assert_int_equal(wc->immediate, 0xcafe0001);
	assert_int_equal(wc->flags, ENG_WC_IMMEDIATE);
	assert_true(wc->solicited && wc->receive);
	expect_pattern(peer->local, PEER_MTU, 0);
	expect_pattern(peer->local + PEER_MTU, PEER_MTU, 0);
	expect_pattern(peer->local + 2 * PEER_MTU, 5, 0);
	assert_int_equal(peer->local[2 * PEER_MTU + 5], 0);
	expect_ack(peer, PEER_RQ_PSN + 2, ACK_CODE(0), 1);
	expect_silence(peer);
}

/* The completion says what kind of message it was. */
static void test_kinds_of_receive_completion(void **state)
{
	struct peer *peer = peer_with_receives(4);
	const struct eng_wc *wc;

	(void)state;
	/* rule S6 test */
	peer_give_request(peer, WIRE_SEND_ONLY, PEER_RQ_PSN, 0);
	wc = expect_wc(peer, 0x2000, ENG_SUCCESS);
	assert_int_equal(wc->byte_len, 0);
	assert_int_equal(wc->flags, 0);
	assert_false(wc->solicited);
	peer_give_request(peer, WIRE_WRITE_ONLY_IMM, PEER_RQ_PSN + 1, 16);
	wc = expect_wc(peer, 0x2001, ENG_SUCCESS);
	assert_int_equal(wc->op, ENG_WRITE_IMM);
	assert_int_equal(wc->byte_len, 16);
	assert_int_equal(wc->flags, ENG_WC_IMMEDIATE);
	assert_int_equal(wc->immediate, 0xcafe0001);
	expect_pattern(peer->remote, 16, 0);
	assert_int_equal(peer->local[8192], 0);
	struct wire_packet inv = peer_request(peer, WIRE_SEND_ONLY_INVALIDATE, PEER_RQ_PSN + 2, 1);
	inv.invalidate_rkey = 0xabcd;
	peer_give(peer, &inv);
	wc = expect_wc(peer, 0x2002, ENG_SUCCESS);
	assert_int_equal(wc->flags, ENG_WC_INVALIDATED);
	assert_int_equal(wc->immediate, 0xabcd);
	assert_int_equal(peer->invalidated, 0xabcd);
}

/* Ahead of the expected PSN: one NAK with the expected PSN, nothing executed, then silence. */
static void test_gap_gets_one_nak(void **state)
{
	struct peer *peer = peer_with_receives(4);

	(void)state;
	/* rule S4 test */
	peer_give_request(peer, WIRE_SEND_ONLY, PEER_RQ_PSN + 1, 8);
	expect_ack(peer, PEER_RQ_PSN, NAK_SEQUENCE, 0);
	peer_give_request(peer, WIRE_SEND_ONLY, PEER_RQ_PSN + 2, 8);
	peer_give_request(peer, WIRE_WRITE_ONLY, PEER_RQ_PSN + 3, 8);
	peer_give_read(peer, PEER_RQ_PSN + 0x7fffff, 0, 8);
	expect_silence(peer);
	expect_no_wc(peer);
	assert_int_equal(peer->remote[0], 0);
	assert_int_equal(peer_view(peer).credits_now, 4);
	/* The expected one ends the silence: the next gap is told again. */
	peer_give_request(peer, WIRE_SEND_ONLY, PEER_RQ_PSN, 8);
	expect_ack(peer, PEER_RQ_PSN, ACK_CODE(3), 1);
	peer_give_request(peer, WIRE_SEND_ONLY, PEER_RQ_PSN + 2, 8);
	expect_ack(peer, PEER_RQ_PSN + 1, NAK_SEQUENCE, 1);
	expect_silence(peer);
}

/* The expected PSN arrives before the NAK was fetched: what is told is what is missing now. */
static void test_overtaken_nak_is_brought_up_to_date(void **state)
{
	struct peer *peer = peer_with_receives(4);

	(void)state;
	/* rule S4 test */
	peer_give_request(peer, WIRE_SEND_ONLY, PEER_RQ_PSN + 1, 8);
	peer_give_request(peer, WIRE_SEND_ONLY, PEER_RQ_PSN, 8);
	expect_ack(peer, PEER_RQ_PSN + 1, NAK_SEQUENCE, 1);
	/* When nothing is missing any more there is no NAK at all. */
	peer_give_request(peer, WIRE_SEND_ONLY, PEER_RQ_PSN + 1, 8);
	peer->sent_read = peer->sent_count;
	expect_ack(peer, PEER_RQ_PSN + 1, ACK_CODE(2), 2);
	expect_silence(peer);
}

/* A gap does not make an ACK that is owed forgotten: the NAK carries it, or it goes itself. */
static void test_owed_ack_survives_a_gap(void **state)
{
	struct peer *peer = peer_with_receives(4);

	(void)state;
	/* rule S7 test */
	peer_give_request(peer, WIRE_SEND_ONLY, PEER_RQ_PSN, 8);
	peer_give_request(peer, WIRE_SEND_ONLY, PEER_RQ_PSN + 2, 8);
	struct wire_packet send = peer_request(peer, WIRE_SEND_ONLY, PEER_RQ_PSN + 1, 8);
	send.ack_request = false;
	peer_give(peer, &send);
	/* The first asked for an ACK, and the third was thrown away: the peer hears of both. */
	peer_pull(peer);
	assert_true(peer->sent_count > peer->sent_read);
	for (; peer->sent_read < peer->sent_count; peer->sent_read++) {
		const struct wire_packet *packet = &peer->sent[peer->sent_read].packet;

		assert_int_equal(packet->opcode, WIRE_ACKNOWLEDGE);
		if (packet->syndrome == NAK_SEQUENCE)
			assert_int_equal(packet->psn, PEER_RQ_PSN + 2);
		else
			assert_uint_in_range(packet->psn, PEER_RQ_PSN, PEER_RQ_PSN + 1);
	}
}

/* Behind the expected PSN: not written again, but acknowledged with the newest PSN executed. */
static void test_duplicate_is_acknowledged_only(void **state)
{
	struct peer *peer = peer_with_receives(4);

	(void)state;
	/* rule S4 test */
	peer_give_request(peer, WIRE_SEND_ONLY, PEER_RQ_PSN, 8);
	peer_give_request(peer, WIRE_WRITE_ONLY, PEER_RQ_PSN + 1, 8);
	expect_ack(peer, PEER_RQ_PSN + 1, ACK_CODE(3), 2);
	memset(peer->local, 0, PEER_REGION_BYTES);
	memset(peer->remote, 0, PEER_REGION_BYTES);
	peer->wc_read = peer->wc_count;
	peer_give_request(peer, WIRE_SEND_ONLY, PEER_RQ_PSN, 8);
	expect_ack(peer, PEER_RQ_PSN + 1, ACK_CODE(3), 2);
	peer_give_request(peer, WIRE_WRITE_ONLY, PEER_RQ_PSN + 1, 8);
	expect_ack(peer, PEER_RQ_PSN + 1, ACK_CODE(3), 2);
	expect_silence(peer);
	expect_no_wc(peer);
	assert_int_equal(peer->local[0] + peer->local[8192] + peer->remote[0], 0);
	assert_int_equal(peer_view(peer).msn, 2);
	assert_int_equal(peer_view(peer).counters[ENG_COUNT_DUPLICATE_REQUEST], 2);
	/* Half the number space back is still behind. */
	peer_give_request(peer, WIRE_SEND_ONLY, PEER_RQ_PSN + 2 - 0x800000, 8);
	expect_no_wc(peer);
}

/* A duplicate in the middle of a message does not disturb it. */
static void test_duplicate_inside_a_message(void **state)
{
	struct peer *peer = peer_with_receives(1);

	(void)state;
	/* rule S4 test */
	peer_give_request(peer, WIRE_SEND_FIRST, PEER_RQ_PSN, PEER_MTU);
	peer_give_request(peer, WIRE_SEND_FIRST, PEER_RQ_PSN, PEER_MTU);
	peer_give_request(peer, WIRE_SEND_MIDDLE, PEER_RQ_PSN + 1, PEER_MTU);
	peer_give_request(peer, WIRE_SEND_MIDDLE, PEER_RQ_PSN + 1, PEER_MTU);
	peer_give_request(peer, WIRE_SEND_LAST, PEER_RQ_PSN + 2, 1);
	assert_int_equal(expect_wc(peer, 0x2000, ENG_SUCCESS)->byte_len, 2 * PEER_MTU + 1);
	peer_give_request(peer, WIRE_SEND_LAST, PEER_RQ_PSN + 2, 1);
	expect_no_wc(peer);
	assert_int_equal(peer_view(peer).expected_psn, PEER_RQ_PSN + 3);
}

/* PSNs wrap in the middle of a message. */
static void test_psn_wrap(void **state)
{
	struct peer *peer = peer_rts((struct peer_config){ .rq_psn = 0xfffffe });
	uint64_t recv = peer_post_recv(peer, 8192);

	(void)state;
	/* rule S2 test, rule S4 test */
	peer_forget(peer);
	peer_give_request(peer, WIRE_SEND_FIRST, 0xfffffe, PEER_MTU);
	peer_give_request(peer, WIRE_SEND_LAST, 0x000001, 8);
	expect_ack(peer, 0xffffff, NAK_SEQUENCE, 0);
	peer_give_request(peer, WIRE_SEND_MIDDLE, 0xffffff, PEER_MTU);
	peer_give_request(peer, WIRE_SEND_MIDDLE, 0x000000, PEER_MTU);
	peer_give_request(peer, WIRE_SEND_MIDDLE, 0xffffff, PEER_MTU);
	peer_give_request(peer, WIRE_SEND_LAST, 0x000001, 8);
	expect_wc(peer, recv, ENG_SUCCESS);
	expect_ack(peer, 0x000001, ACK_CODE(0), 1);
	expect_silence(peer);
}

/* ACKs are coalesced into the newest; without AckReq none is owed at once. */
static void test_acks_are_coalesced(void **state)
{
	struct peer *peer = peer_with_receives(6);

	(void)state;
	/* rule S7 test */
	for (uint32_t i = 0; i < 4; i++)
		peer_give_request(peer, WIRE_SEND_ONLY, PEER_RQ_PSN + i, 8);
	assert_int_not_equal(eng_owed(peer->qp), ENG_OWED_NOTHING);
	expect_ack(peer, PEER_RQ_PSN + 3, ACK_CODE(2), 4);
	expect_silence(peer);
	assert_int_equal(eng_owed(peer->qp), ENG_OWED_NOTHING);
	/* Every AckReq that is fetched by itself is answered with its own PSN. */
	for (uint32_t i = 4; i < 6; i++) {
		peer_give_request(peer, WIRE_WRITE_ONLY, PEER_RQ_PSN + i, 8);
		expect_ack(peer, PEER_RQ_PSN + i, ACK_CODE(2), i + 1);
	}
	expect_silence(peer);
}

/* The ACK of what stands before a READ goes before its responses, that of later things after. */
static void test_order_of_acks_and_responses(void **state)
{
	struct peer *peer = peer_with_receives(0);

	(void)state;
	/* rule S7 test */
	peer_give_request(peer, WIRE_WRITE_ONLY, PEER_RQ_PSN, 8);
	peer_give_read(peer, PEER_RQ_PSN + 1, 0, 2 * PEER_MTU);
	expect_ack(peer, PEER_RQ_PSN, ACK_CODE(0), 2);
	expect_packet(peer, WIRE_READ_RESPONSE_FIRST, PEER_RQ_PSN + 1);
	expect_packet(peer, WIRE_READ_RESPONSE_LAST, PEER_RQ_PSN + 2);
	expect_silence(peer);
	peer_give_read(peer, PEER_RQ_PSN + 3, 0, 8);
	peer_give_request(peer, WIRE_WRITE_ONLY, PEER_RQ_PSN + 4, 8);
	expect_packet(peer, WIRE_READ_RESPONSE_ONLY, PEER_RQ_PSN + 3);
	expect_ack(peer, PEER_RQ_PSN + 4, ACK_CODE(0), 4);
	expect_silence(peer);
}

/* Requests are taken in RTR too, and responses go in RTR, before the send side is ready. */
static void test_responder_works_in_rtr(void **state)
{
	struct peer *peer = peer_new((struct peer_config){ 0 });
	uint64_t recv;

	(void)state;
	/* rule S7 test */
	peer_give_request(peer, WIRE_SEND_ONLY, PEER_RQ_PSN, 8);
	peer_raise(peer, ENG_INIT);
	peer_give_request(peer, WIRE_SEND_ONLY, PEER_RQ_PSN, 8);
	expect_silence(peer);
	peer_raise(peer, ENG_RTR);
	recv = peer_post_recv(peer, 64);
	peer_forget(peer);
	peer_give_request(peer, WIRE_SEND_ONLY, PEER_RQ_PSN, 8);
	expect_ack(peer, PEER_RQ_PSN, ACK_CODE(0), 1);
	expect_wc(peer, recv, ENG_SUCCESS);
}

/* A run of responses that the socket does not take. */
static void take_back_responses(struct peer *peer)
{
	struct eng_run run = peer_empty_run(peer, 1);

	assert_int_equal(peer_transmit(peer, &run, ENG_RESPONSES), ENG_TX_RUN);
	eng_unsent(peer->qp, &run);
}

/* An RNR NAK that has not gone, and need not go any more, leaves the ACK that it stood for. */
static void test_ack_behind_a_nak_that_never_went(void **state)
{
	struct peer *peer = peer_rts((struct peer_config){ 0 });
	struct wire_packet send = peer_request(peer, WIRE_SEND_FIRST, PEER_RQ_PSN + 1, PEER_MTU);

	(void)state;
	/* rule S7 test, rule S11 test */
	peer_give_request(peer, WIRE_WRITE_ONLY, PEER_RQ_PSN, 8);
	send.ack_request = false;
	peer_give(peer, &send);
	take_back_responses(peer);
	peer_post_recv(peer, 2 * PEER_MTU);
	peer_give(peer, &send);
	expect_ack(peer, PEER_RQ_PSN + 1, ACK_CODE(0), 1);
	expect_silence(peer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PEER_TEST(test_expected_psn_is_executed),
		PEER_TEST(test_kinds_of_receive_completion),
		PEER_TEST(test_gap_gets_one_nak),
		PEER_TEST(test_overtaken_nak_is_brought_up_to_date),
		PEER_TEST(test_owed_ack_survives_a_gap),
		PEER_TEST(test_duplicate_is_acknowledged_only),
		PEER_TEST(test_duplicate_inside_a_message),
		PEER_TEST(test_psn_wrap),
		PEER_TEST(test_acks_are_coalesced),
		PEER_TEST(test_order_of_acks_and_responses),
		PEER_TEST(test_responder_works_in_rtr),
		PEER_TEST(test_ack_behind_a_nak_that_never_went),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
