/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Limits of the bytes in flight: of one queue pair, and of all that share a socket. */
#include "dut.h"

static struct dut *unlimited(struct dut_config config)
{
	struct dut *dut = dut_rts(config);

	dut_ack(dut, dut->config.sq_psn - 1, NO_CREDITS_REPORTED, 0);
	return dut;
}

/* The last packet before the window closes has AckReq, and its ACK opens the window. */
static void test_window(void **state)
{
	struct dut *dut = unlimited((struct dut_config){ .cwnd = 8, .mtu = 4096 });
	unsigned int sent;

	(void)state;
	/* rule S3 test */
	for (int i = 0; i < 10; i++)
		dut_post(dut, ENG_WRITE, 4 * 4096, ENG_SIGNALED);
	dut_pull(dut);
	assert_int_equal(dut->why, ENG_TX_CWND);
	sent = dut->sent_count;
	assert_uint_in_range(sent, 4, 8);
	assert_int_equal(eng_in_flight(dut->qp), sent);
	assert_true(dut->sent[sent - 1].packet.ack_request);
	dut_ack(dut, DUT_SQ_PSN + sent - 1, NO_CREDITS_REPORTED, sent / 4);
	dut_pull(dut);
	assert_true(dut->sent_count > sent);
}

/* Returns true if further packets wait until the window has room for a full burst. */
static bool waits_for_room(struct dut *dut)
{
	const struct eng_tx_ctx ctx = { .now = dut->now,
					.trigger = ENG_TX_TRIGGER_POST,
					.sides = ENG_REQUESTS };
	struct eng_burst burst = dut_empty_burst(dut, 15);
	enum eng_tx reason = eng_transmit(dut->qp, &burst, &ctx);

	if (reason == ENG_TX_BURST)
		eng_tx_rollback(dut->qp, &burst);
	return reason == ENG_TX_CWND;
}

/* After the window was full requests wait until a burst fits, but only if an ACK will arrive. */
static void test_room_for_a_burst(void **state)
{
	struct dut *dut = unlimited((struct dut_config){ .cwnd = 64, .mtu = 4096 });
	unsigned int sent;

	(void)state;
	/* rule S3 test */
	for (int i = 0; i < 40; i++)
		dut_post(dut, ENG_WRITE, 4 * 4096, 0);
	assert_false(waits_for_room(dut));
	dut_pull(dut);
	assert_int_equal(dut->why, ENG_TX_CWND);
	sent = dut->sent_count;
	assert_true(sent >= 40);
	dut_ack(dut, DUT_SQ_PSN + 9, NO_CREDITS_REPORTED, 2);
	assert_true(waits_for_room(dut));
	dut_ack(dut, DUT_SQ_PSN + 19, NO_CREDITS_REPORTED, 5);
	assert_false(waits_for_room(dut));
	/* All packets with AckReq are acknowledged: no ACK would end the wait. */
	dut_ack(dut, DUT_SQ_PSN + sent - 1, NO_CREDITS_REPORTED, sent / 4);
	assert_false(waits_for_room(dut));
	/* Packets to be retransmitted do not count as in flight. */
	dut_pull(dut);
	dut_nak(dut, DUT_SQ_PSN + sent + 1, NAK_SEQUENCE, sent / 4);
	assert_false(waits_for_room(dut));
}

/* A full window that is lost as a whole is sent again, each time, though the window shrinks. */
static void test_lost_window(void **state)
{
	struct dut *dut = unlimited((struct dut_config){ .cwnd = 32, .mtu = 4096 });
	uint32_t full, acked = 0;

	(void)state;
	/* rule S10 test, rule S3 test */
	for (int i = 0; i < 60; i++)
		dut_post(dut, ENG_WRITE, 4096, ENG_SIGNALED);
	dut_pull(dut);
	assert_int_equal(dut->why, ENG_TX_CWND);
	full = dut->sent_count;
	assert_uint_in_range(full, 16, 32);
	for (int round = 0; round < 12; round++) {
		dut_forget(dut);
		assert_true(dut_advance_to_deadline(dut));
		assert_uint_in_range(dut->sent_count - dut->sent_read, 1, full);
		assert_int_equal(dut->sent[dut->sent_read].packet.psn, DUT_SQ_PSN + acked);
		/* Three rounds have no response, each later one has one ACK. */
		if (round >= 3)
			dut_ack(dut, DUT_SQ_PSN + acked++, NO_CREDITS_REPORTED, 0);
	}
	assert_int_equal(dut->wc_count, acked);
}

/* The in-flight budget returns to zero, whatever happens to the packets of its queue pairs. */
static void test_share_returns_to_zero(void **state)
{
	struct eng_inflight_budget share = { .limit = 1 << 20 };
	struct dut *first = unlimited((struct dut_config){ .share = &share });
	struct dut *second = unlimited((struct dut_config){ .share = &share });
	struct dut *third = unlimited((struct dut_config){ .share = &share });
	uint64_t one;

	(void)state;
	/* rule S3 test */
	assert_true(share.under_way == 0);
	dut_post(first, ENG_WRITE, 3 * DUT_MTU, 0);
	dut_pull(first);
	one = share.under_way;
	assert_true(one >= 3 * DUT_MTU);
	dut_post(second, ENG_WRITE, 3 * DUT_MTU, 0);
	dut_post(third, ENG_READ, 3 * DUT_MTU, 0);
	dut_pull(second);
	dut_pull(third);
	assert_true(share.under_way > 2 * one);
	/* Packets are acknowledged in part, lost and sent again, and acknowledged. */
	dut_ack(first, DUT_SQ_PSN, NO_CREDITS_REPORTED, 0);
	dut_nak(first, DUT_SQ_PSN + 1, NAK_SEQUENCE, 0);
	dut_pull(first);
	dut_advance_to_deadline(first);
	dut_ack(first, DUT_SQ_PSN + 2, NO_CREDITS_REPORTED, 1);
	dut_set_state(second, ENG_ERR);
	assert_true(share.under_way > 0);
	dut_set_state(third, ENG_RESET);
	assert_true(share.under_way == 0);
}

/* If the budget is used up, queue pairs with packets in flight must wait, and no others. */
static void test_full_share(void **state)
{
	struct eng_inflight_budget share = { .limit = 2 * DUT_MTU };
	struct dut *first = unlimited((struct dut_config){ .share = &share });
	struct dut *second = unlimited((struct dut_config){ .share = &share });

	(void)state;
	/* rule S3 test */
	dut_post(first, ENG_SEND, 3 * DUT_MTU, ENG_SIGNALED); /* one burst */
	dut_pull(first);
	assert_int_equal(first->sent_count, 3);
	dut_post(first, ENG_WRITE, 8, 0);
	dut_pull(first);
	assert_int_equal(first->sent_count, 3);
	assert_int_equal(first->why, ENG_TX_BUDGET);
	dut_post(second, ENG_WRITE, 8, 0);
	dut_pull(second);
	assert_int_equal(second->sent_count, 1);
	dut_ack(first, DUT_SQ_PSN + 2, NO_CREDITS_REPORTED, 1);
	dut_pull(first);
	assert_int_equal(first->sent_count, 4);
}

/* UC has no ACKs: its packets are not in flight any more once they are sent. */
static void test_share_of_uc(void **state)
{
	struct eng_inflight_budget share = { .limit = 1 << 20 };
	struct dut *dut = dut_rts((struct dut_config){ .type = ENG_UC, .share = &share });

	(void)state;
	/* rule S3 test */
	for (int i = 0; i < 5; i++)
		dut_post(dut, ENG_SEND, 3 * DUT_MTU, ENG_SIGNALED);
	dut_pull(dut);
	assert_int_equal(dut->sent_count, 15);
	assert_true(share.under_way == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DUT_TEST(test_window),	    DUT_TEST(test_room_for_a_burst),
		DUT_TEST(test_lost_window), DUT_TEST(test_share_returns_to_zero),
		DUT_TEST(test_full_share),  DUT_TEST(test_share_of_uc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
