/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Transmit scheduling, with eng_transmit() called as by progress cycles: which requests are batched
 * and which ACKs are delayed, and for how long.
 */
#include "dut.h"

enum {
	REPLY_WAIT_NS = 50 * US,
	REST_WAIT_NS = 10 * US,
};

static const struct eng_tx_ctx polled = {
	.trigger = ENG_TX_TRIGGER_POLL,
	.sides = ENG_REQUESTS | ENG_RESPONSES,
	.polled = true,
	.watched = true,
};

/* Calls eng_transmit() for one burst with this context, at the time of the dut. */
static enum eng_tx ask(struct dut *dut, struct eng_burst *burst, struct eng_tx_ctx ctx)
{
	*burst = dut_empty_burst(dut, 32);
	ctx.now = dut->now;
	return eng_transmit(dut->qp, burst, &ctx);
}

static void expect_burst(struct dut *dut, struct eng_tx_ctx ctx, enum eng_burst_kind kind,
			 uint32_t packets)
{
	struct eng_burst burst;

	assert_int_equal(ask(dut, &burst, ctx), ENG_TX_BURST);
	assert_int_equal(burst.kind, kind);
	assert_int_equal(burst.packets, packets);
}

static void expect_none(struct dut *dut, struct eng_tx_ctx ctx, enum eng_tx reason)
{
	struct eng_burst burst;

	assert_int_equal(ask(dut, &burst, ctx), reason);
}

static enum eng_tx posted(struct dut *dut, struct eng_tx_ctx ctx)
{
	ctx.now = dut->now;
	return eng_sq_kick(dut->qp, &ctx);
}

/* Returns a dut that has received n WRITEs; its application posts, its peer reports no credits. */
static struct dut *written_to(unsigned int n)
{
	const struct dut_config config = { .credits_hidden = true, .sq_slots = 256 };
	struct dut *dut = dut_rts(config);

	dut_ack(dut, DUT_SQ_PSN - 1, NO_CREDITS_REPORTED, 0);
	posted(dut, polled);
	dut->now += MS;
	for (unsigned int i = 0; i < n; i++)
		dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN + i, 8);
	return dut;
}

/* A delayed ACK is still sent when a local error moves the queue pair to ERR. */
static void test_error_sends_the_ack_that_waits(void **state)
{
	struct dut *dut = written_to(1);

	(void)state;
	/* rule S7 test, rule S13 test */
	expect_none(dut, polled, ENG_TX_ACK_DELAY);
	dut_wqe(dut, ENG_WRITE, 8, 0)->data.sge[0].lkey = 0xbad;
	eng_sq_push(dut->qp);
	expect_burst(dut, polled, ENG_BURST_NAK, 1);
	assert_int_equal(eng_qp_state(dut->qp), ENG_ERR);
}

/* An ACK is delayed for a reply, at most REPLY_WAIT_NS; without one the next is not delayed. */
static void test_ack_waits_once(void **state)
{
	struct dut *dut = written_to(1);
	uint64_t began = dut->now;

	(void)state;
	/* rule S7 test */
	expect_none(dut, polled, ENG_TX_ACK_DELAY);
	assert_int_equal(eng_deadline(dut->qp), began + REPLY_WAIT_NS);
	/* A further call does not change the time. */
	expect_none(dut, polled, ENG_TX_ACK_DELAY);
	dut->now = began + REPLY_WAIT_NS - 1;
	expect_none(dut, polled, ENG_TX_ACK_DELAY);
	dut->now = began + REPLY_WAIT_NS;
	expect_burst(dut, polled, ENG_BURST_ACK, 1);
	assert_true(eng_deadline(dut->qp) == ENG_NEVER);
	dut->now += MS;
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN + 1, 8);
	expect_burst(dut, polled, ENG_BURST_ACK, 1);
	/* After the application has posted, an ACK is delayed again. */
	dut_post(dut, ENG_WRITE, 8, 0);
	assert_int_equal(posted(dut, polled), ENG_TX_BURST);
	expect_burst(dut, polled, ENG_BURST_REQUESTS, 1);
	dut->now += MS;
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN + 2, 8);
	expect_none(dut, polled, ENG_TX_ACK_DELAY);
}

/* A reply and the delayed ACK share a burst; after a rollback both are pending again. */
static void test_ack_rides(void **state)
{
	struct dut *dut = written_to(1);
	struct eng_burst burst;

	(void)state;
	/* rule S7 test */
	expect_none(dut, polled, ENG_TX_ACK_DELAY);
	dut_post(dut, ENG_WRITE, 100, 0);
	assert_int_equal(posted(dut, polled), ENG_TX_BURST);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ask(dut, &burst, polled), ENG_TX_BURST);
		assert_int_equal(burst.kind, ENG_BURST_REQUESTS);
		assert_int_equal(burst.packets, 2);
		assert_true(burst.has_ack);
		assert_int_equal(eng_resp_pending(dut->qp), ENG_RESP_NONE);
		if (i)
			break;
		eng_tx_rollback(dut->qp, &burst);
		assert_int_equal(eng_resp_pending(dut->qp), ENG_RESP_DELAYABLE);
	}
	expect_none(dut, polled, ENG_TX_IDLE);
	/* A burst of packets shorter than an ACK cannot end with an ACK. */
	dut->now += MS;
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN + 1, 8);
	dut_post(dut, ENG_SEND, 0, 0);
	assert_int_equal(ask(dut, &burst, polled), ENG_TX_BURST);
	assert_false(burst.has_ack);
	expect_burst(dut, polled, ENG_BURST_ACK, 1);
}

/*
 * A thread that computes before it replies runs no progress cycle when the ACK is due.  The ACK is
 * still sent after the reply: before it, it would stop the peer from polling before the reply
 * arrives.
 */
static void test_overdue_ack_rides(void **state)
{
	struct eng_tx_ctx post = polled;

	(void)state;
	post.trigger = ENG_TX_TRIGGER_POST;
	/* rule S7 test */
	for (uint32_t bytes = DUT_MTU; bytes <= 9 * DUT_MTU; bytes += 8 * DUT_MTU) {
		struct dut *dut = written_to(1);
		struct eng_burst burst;

		expect_none(dut, polled, ENG_TX_ACK_DELAY);
		dut->now += 2 * REPLY_WAIT_NS;
		dut_post(dut, ENG_WRITE, bytes, 0);
		assert_int_equal(posted(dut, post), ENG_TX_BURST);
		do {
			assert_int_equal(ask(dut, &burst, post), ENG_TX_BURST);
			assert_int_equal(burst.kind, ENG_BURST_REQUESTS);
		} while (!burst.has_ack);
	}
	/* In a progress cycle that is late the ACK does not wait for the rest of a long reply. */
	struct dut *dut = written_to(1);

	expect_none(dut, polled, ENG_TX_ACK_DELAY);
	dut->now += 2 * REPLY_WAIT_NS;
	dut_post(dut, ENG_WRITE, 64 * DUT_MTU, 0);
	expect_burst(dut, polled, ENG_BURST_REQUESTS, 2);
	expect_burst(dut, polled, ENG_BURST_ACK, 1);
}

/*
 * Sends the packets of a message of 64, two each 5 us, until an ACK is sent.  Returns the number of
 * packets that were sent before the ACK although it was due.
 */
static uint32_t packets_before_ack(struct dut *dut, struct eng_tx_ctx ctx, uint64_t due)
{
	struct eng_burst burst;
	uint32_t packets = 0;

	for (;; dut->now += 5 * US) {
		burst = dut_empty_burst(dut, 2);
		ctx.now = dut->now;
		assert_int_equal(eng_transmit(dut->qp, &burst, &ctx), ENG_TX_BURST);
		if (burst.kind != ENG_BURST_REQUESTS || burst.has_ack)
			break;
		packets += dut->now < due ? 0 : burst.packets;
	}
	assert_int_equal(eng_resp_pending(dut->qp), ENG_RESP_NONE);
	/* The message has not ended. */
	assert_true(eng_in_flight(dut->qp) < 64);
	return packets;
}

/* An ACK that becomes due while a long message is sent does not wait for the end of the message. */
static void test_ack_within_long_message(void **state)
{
	/* The ACK of one message is delayed for a reply, that of three is not. */
	static const struct {
		unsigned int messages;
		uint64_t wait_ns;
	} rows[] = { { 1, REPLY_WAIT_NS }, { 3, 0 } };

	(void)state;
	/* rule S7 test */
	for (unsigned int i = 0; i < 2; i++) {
		struct dut *dut = written_to(0);
		uint64_t due;

		dut_post(dut, ENG_WRITE, 64 * DUT_MTU, 0);
		expect_burst(dut, polled, ENG_BURST_REQUESTS, 2);
		dut->now += 5 * US;
		for (unsigned int k = 0; k < rows[i].messages; k++)
			dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN + k, 8);
		due = dut->now + rows[i].wait_ns;
		assert_uint_in_range(packets_before_ack(dut, polled, due), 0, 2);
	}
}

/*
 * An ACK that is overdue when a long message is posted is sent after the packets of that call, and
 * the full congestion window limits their number.
 */
static void test_overdue_ack_with_full_window(void **state)
{
	const struct dut_config config = { .credits_hidden = true, .cwnd = 4 };
	struct dut *dut = dut_rts(config);
	struct eng_tx_ctx post = polled;

	(void)state;
	/* rule S7 test */
	post.trigger = ENG_TX_TRIGGER_POST;
	dut_ack(dut, DUT_SQ_PSN - 1, NO_CREDITS_REPORTED, 0);
	posted(dut, polled);
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN, 8);
	expect_none(dut, polled, ENG_TX_ACK_DELAY);
	dut->now += 2 * REPLY_WAIT_NS;
	dut_post(dut, ENG_WRITE, 64 * DUT_MTU, 0);
	assert_uint_in_range(packets_before_ack(dut, post, dut->now), 0, 16);
	expect_none(dut, polled, ENG_TX_CWND);
}

/* ACKs are sent at once in a stream, if a delay would cost a wake-up, and in the last call. */
static void test_ack_does_not_wait(void **state)
{
	struct eng_tx_ctx unwatched = polled, last = polled;
	struct dut *dut = written_to(3);

	(void)state;
	/* rule S7 test */
	unwatched.watched = false;
	last.trigger = ENG_TX_TRIGGER_FINAL;
	expect_burst(dut, polled, ENG_BURST_ACK, 1);
	dut = written_to(1);
	expect_burst(dut, unwatched, ENG_BURST_ACK, 1);
	dut = written_to(1);
	expect_burst(dut, last, ENG_BURST_ACK, 1);
	/* Only one ACK is delayed, not another one after it. */
	dut = written_to(1);
	expect_none(dut, polled, ENG_TX_ACK_DELAY);
	dut->now += US;
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN + 1, 8);
	expect_burst(dut, polled, ENG_BURST_ACK, 1);
}

/* Posts a receive, so that the ACK of the message with this PSN is delayed. */
static void expect_post_awaited(struct dut *dut, uint32_t psn)
{
	dut_post_recv(dut, 100);
	eng_receive_posted(dut->qp);
	dut_pull(dut);
	dut_forget(dut);
	dut->now += MS;
	dut_give_request(dut, WIRE_SEND_ONLY, psn, 8);
	expect_none(dut, polled, ENG_TX_ACK_DELAY);
}

/* An ACK that would report no credits is delayed until a receive is posted. */
static void test_ack_waits_for_receive(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });
	struct eng_tx_ctx post = polled;

	(void)state;
	post.trigger = ENG_TX_TRIGGER_POST;
	/*
	 * rules S7 and C10 test: but only if the application has posted after an earlier message,
	 * since it may exit after the first one.
	 */
	dut_post_recv(dut, 100);
	eng_receive_posted(dut->qp);
	dut_forget(dut);
	dut->now += MS;
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN, 8);
	expect_burst(dut, polled, ENG_BURST_ACK, 1);
	expect_post_awaited(dut, DUT_RQ_PSN + 1);
	assert_false(eng_receive_posted(dut->qp));
	dut_post_recv(dut, 100);
	assert_true(eng_receive_posted(dut->qp));
	expect_burst(dut, post, ENG_BURST_ACK, 1);
	assert_false(eng_receive_posted(dut->qp));
	/* Without a receive the ACK is sent after REPLY_WAIT_NS. */
	dut->now += MS;
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN + 2, 8);
	expect_none(dut, polled, ENG_TX_ACK_DELAY);
	dut->now += REPLY_WAIT_NS;
	expect_burst(dut, polled, ENG_BURST_ACK, 1);
}

/* No ACK is delayed for an application that has received a stream of messages without a post. */
static void test_ack_behind_stream_does_not_wait(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });
	uint32_t psn = DUT_RQ_PSN;

	(void)state;
	dut_post_recv(dut, 100);
	dut_forget(dut);
	for (int i = 0; i < 9; i++) {
		dut->now += MS;
		dut_give_request(dut, WIRE_WRITE_ONLY, psn++, 8);
		dut_pull(dut);
	}
	dut_forget(dut);
	/* rules S7 and C10 test */
	dut->now += MS;
	dut_give_request(dut, WIRE_SEND_ONLY, psn++, 8);
	expect_burst(dut, polled, ENG_BURST_ACK, 1);
	/* After a post, even of a receive, the ACK is delayed again. */
	expect_post_awaited(dut, psn);
}

/* The ACK of the first packets of a message is delayed for the rest, at most REST_WAIT_NS. */
static void test_ack_waits_for_rest(void **state)
{
	struct dut *dut = written_to(0);
	struct wire_packet first = dut_request(dut, WIRE_WRITE_FIRST, DUT_RQ_PSN, DUT_MTU);

	(void)state;
	/* rule S7 test */
	first.dma_length = 2 * DUT_MTU;
	dut_give(dut, &first);
	assert_int_equal(eng_resp_pending(dut->qp), ENG_RESP_DELAYABLE);
	expect_none(dut, polled, ENG_TX_ACK_DELAY);
	assert_int_equal(eng_deadline(dut->qp), dut->now + REST_WAIT_NS);
	dut->now += REST_WAIT_NS;
	expect_burst(dut, polled, ENG_BURST_ACK, 1);
}

/* With nothing in flight a post is sent at once; in a stream posts are batched to full bursts. */
static void test_posts_are_gathered(void **state)
{
	struct dut *dut = written_to(0);
	unsigned int gathered = 0;

	(void)state;
	dut_post(dut, ENG_WRITE, 8, 0);
	assert_int_equal(posted(dut, polled), ENG_TX_BURST);
	for (int i = 0; i < 17; i++)
		dut_post(dut, ENG_WRITE, 8, 0);
	dut_pull(dut);
	dut->now += US;
	for (;;) {
		dut_post(dut, ENG_WRITE, 8, 0);
		if (posted(dut, polled) != ENG_TX_BATCH)
			break;
		gathered++;
	}
	assert_uint_in_range(gathered, 100, 140);
	expect_burst(dut, polled, ENG_BURST_REQUESTS, 32);
	dut_forget(dut);
	/* The first signaled request ends a batch of many. */
	for (int i = 0; i < 17; i++)
		dut_post(dut, ENG_WRITE, 8, 0);
	dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
	assert_int_equal(posted(dut, polled), ENG_TX_BURST);
}

/* While other queue pairs wait for the in-flight budget, requests wait, too, but not responses. */
static void test_share_waits(void **state)
{
	struct eng_tx_ctx waits = polled;
	struct dut *dut = written_to(3);

	(void)state;
	waits.budget_waits = true;
	dut_post(dut, ENG_WRITE, 8, 0);
	assert_int_equal(posted(dut, waits), ENG_TX_BUDGET);
	expect_burst(dut, waits, ENG_BURST_ACK, 1);
	expect_none(dut, waits, ENG_TX_BUDGET);
	expect_burst(dut, polled, ENG_BURST_REQUESTS, 1);
}

/* UC and UD packets do not use the in-flight budget, so they do not wait for it. */
static void test_share_is_of_reliable_ones(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ .type = ENG_UC });
	struct eng_tx_ctx waits = polled;

	(void)state;
	waits.budget_waits = true;
	waits.now = dut->now;
	dut_post(dut, ENG_SEND, 8, ENG_SIGNALED);
	assert_int_equal(posted(dut, waits), ENG_TX_BURST);
	expect_burst(dut, waits, ENG_BURST_REQUESTS, 1);
}

/*
 * An ACK was due while a long message was sent, so that no packet of it had AckReq when the budget
 * was used up.  After that ACK has arrived the rest of the message is sent before other queue
 * pairs, and requests the ACK that frees the budget.
 */
static void test_share_is_given_back(void **state)
{
	struct eng_inflight_budget share = { .limit = UINT64_MAX, .queued = true };
	struct eng_tx_ctx waits = polled;
	struct dut *dut = dut_rts((struct dut_config){ .share = &share });
	struct eng_burst burst = dut_empty_burst(dut, 6);

	(void)state;
	/* rule S7 test */
	waits.now = dut->now;
	dut_ack(dut, DUT_SQ_PSN - 1, NO_CREDITS_REPORTED, 0);
	dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
	expect_burst(dut, polled, ENG_BURST_REQUESTS, 1);
	dut_post(dut, ENG_WRITE, 16 * DUT_MTU, 0);
	/* A First is longer than the Middle after it, which ends the burst. */
	expect_burst(dut, polled, ENG_BURST_REQUESTS, 2);
	assert_int_equal(eng_transmit(dut->qp, &burst, &waits), ENG_TX_BURST);
	assert_int_equal(burst.packets, 6);
	waits.budget_waits = true;
	share.limit = share.under_way++;
	expect_none(dut, waits, ENG_TX_BUDGET);
	dut_ack(dut, DUT_SQ_PSN, NO_CREDITS_REPORTED, 1);
	expect_burst(dut, waits, ENG_BURST_REQUESTS, 8);
	expect_none(dut, waits, ENG_TX_IDLE);
	dut_ack(dut, DUT_SQ_PSN + 16, NO_CREDITS_REPORTED, 2);
	assert_int_equal(share.under_way, 1);
}

/* A transport that is nearly full gets ACKs and short bursts of requests, no READ responses. */
static void test_full_transport(void **state)
{
	struct eng_tx_ctx full = polled;
	struct dut *dut = written_to(3);

	(void)state;
	full.full = true;
	for (int i = 0; i < 9; i++)
		dut_post(dut, ENG_WRITE, 8, 0);
	expect_burst(dut, full, ENG_BURST_ACK, 1);
	expect_none(dut, full, ENG_TX_BACKPRESSURE);
	expect_burst(dut, polled, ENG_BURST_REQUESTS, 9);
	dut_post(dut, ENG_WRITE, 8, 0);
	expect_burst(dut, full, ENG_BURST_REQUESTS, 1);
	dut_give_read(dut, DUT_RQ_PSN + 3, 0, 100);
	/* The caller must call again for them, even if the requests wait for another reason. */
	expect_none(dut, full, ENG_TX_BACKPRESSURE);
	expect_burst(dut, polled, ENG_BURST_READ_ATOMIC_RESP, 1);
	dut_give_read(dut, DUT_RQ_PSN + 4, 0, 100);
	full.budget_waits = true;
	dut_post(dut, ENG_WRITE, 8, 0);
	expect_none(dut, full, ENG_TX_BACKPRESSURE);
	expect_burst(dut, polled, ENG_BURST_REQUESTS, 1);
	expect_burst(dut, polled, ENG_BURST_READ_ATOMIC_RESP, 1);
}

/* With many requests and responses to send, their bursts alternate. */
static void test_sides_take_turns(void **state)
{
	struct dut *dut = written_to(0);
	unsigned int answers = 0;

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		dut_give_read(dut, DUT_RQ_PSN + 8 * i, 0, 8 * DUT_MTU);
	for (int i = 0; i < 40; i++)
		dut_post(dut, ENG_WRITE, DUT_MTU, 0);
	for (int i = 0; i < 4; i++) {
		struct eng_burst burst = dut_empty_burst(dut, 4);
		struct eng_tx_ctx ctx = polled;

		ctx.now = dut->now;
		assert_int_equal(eng_transmit(dut->qp, &burst, &ctx), ENG_TX_BURST);
		answers += burst.kind == ENG_BURST_READ_ATOMIC_RESP;
	}
	assert_int_equal(answers, 2);
}

/*
 * After the congestion window was full, requests wait until a part of it is free; on a network only
 * for a small part, since a long burst would fill a queue.
 */
static void test_full_window_opens(void **state)
{
	static const struct {
		bool network;
		uint32_t acked; /* number of packets whose ACK does not free enough */
	} rows[] = { { true, 1 }, { false, 2 } };

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		const struct dut_config config = { .network = rows[i].network,
						   .cwnd = 16,
						   .mtu = 4096 };
		struct dut *dut = dut_rts(config);
		uint32_t acked = rows[i].acked;

		dut_ack(dut, DUT_SQ_PSN - 1, NO_CREDITS_REPORTED, 0);
		for (unsigned int posts = 0; posts < 64; posts++)
			dut_post(dut, ENG_WRITE, 4096, 0);
		dut_pull(dut);
		assert_int_equal(eng_in_flight(dut->qp), 16);
		dut_ack(dut, DUT_SQ_PSN + acked - 1, NO_CREDITS_REPORTED, acked);
		expect_none(dut, polled, ENG_TX_CWND);
		dut_ack(dut, DUT_SQ_PSN + 2 * acked - 1, NO_CREDITS_REPORTED, 2 * acked);
		if (rows[i].network)
			expect_burst(dut, polled, ENG_BURST_REQUESTS, 2);
		else
			expect_none(dut, polled, ENG_TX_CWND);
		if (i == 0)
			dut_teardown(NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DUT_TEST(test_ack_waits_once),
		DUT_TEST(test_ack_rides),
		DUT_TEST(test_overdue_ack_rides),
		DUT_TEST(test_ack_within_long_message),
		DUT_TEST(test_overdue_ack_with_full_window),
		DUT_TEST(test_ack_does_not_wait),
		DUT_TEST(test_ack_waits_for_receive),
		DUT_TEST(test_ack_behind_stream_does_not_wait),
		DUT_TEST(test_ack_waits_for_rest),
		DUT_TEST(test_posts_are_gathered),
		DUT_TEST(test_full_window_opens),
		DUT_TEST(test_share_waits),
		DUT_TEST(test_share_is_of_reliable_ones),
		DUT_TEST(test_share_is_given_back),
		DUT_TEST(test_full_transport),
		DUT_TEST(test_sides_take_turns),
		DUT_TEST(test_error_sends_the_ack_that_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
