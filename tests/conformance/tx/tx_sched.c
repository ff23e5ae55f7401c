/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * When packets leave, with eng_transmit() called in rounds as in production: what is gathered or
 * delayed, for how long, and what is not.
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

/* Asks for one burst with this context, at the time of the dut. */
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

/* A dut whose application posts and whose peer reports no credits; n WRITEs in this round. */
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

/* An error that ends the queue pair does not take away the ACK that waits for an answer. */
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

/* An ACK waits for an answer, leaves without one in time, and then the next does not wait. */
static void test_ack_waits_once(void **state)
{
	struct dut *dut = written_to(1);
	uint64_t began = dut->now;

	(void)state;
	/* rule S7 test */
	expect_none(dut, polled, ENG_TX_ACK_DELAY);
	assert_int_equal(eng_deadline(dut->qp), began + REPLY_WAIT_NS);
	/* Asking again changes nothing. */
	expect_none(dut, polled, ENG_TX_ACK_DELAY);
	dut->now = began + REPLY_WAIT_NS - 1;
	expect_none(dut, polled, ENG_TX_ACK_DELAY);
	dut->now = began + REPLY_WAIT_NS;
	expect_burst(dut, polled, ENG_BURST_ACK, 1);
	assert_true(eng_deadline(dut->qp) == ENG_NEVER);
	dut->now += MS;
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN + 1, 8);
	expect_burst(dut, polled, ENG_BURST_ACK, 1);
	/* A queue pair that answers is worth waiting for again. */
	dut_post(dut, ENG_WRITE, 8, 0);
	assert_int_equal(posted(dut, polled), ENG_TX_BURST);
	expect_burst(dut, polled, ENG_BURST_REQUESTS, 1);
	dut->now += MS;
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN + 2, 8);
	expect_none(dut, polled, ENG_TX_ACK_DELAY);
}

/* The answer takes the ACK along, and both come back when the burst could not be sent. */
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
	/* Packets shorter than an ACK cannot be followed by one in a burst. */
	dut->now += MS;
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN + 1, 8);
	dut_post(dut, ENG_SEND, 0, 0);
	assert_int_equal(ask(dut, &burst, polled), ENG_TX_BURST);
	assert_false(burst.has_ack);
	expect_burst(dut, polled, ENG_BURST_ACK, 1);
}

/*
 * A thread that computes before it answers makes no round at the ACK's time.  The answer takes the
 * ACK along even so: in front of it, it would end the peer's polling before the answer has come.
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
	/* In a round that comes late it does not wait for the rest of a long answer. */
	struct dut *dut = written_to(1);

	expect_none(dut, polled, ENG_TX_ACK_DELAY);
	dut->now += 2 * REPLY_WAIT_NS;
	dut_post(dut, ENG_WRITE, 64 * DUT_MTU, 0);
	expect_burst(dut, polled, ENG_BURST_REQUESTS, 2);
	expect_burst(dut, polled, ENG_BURST_ACK, 1);
}

/* In a stream, in a long message, or where to wait would cost a wake-up, ACKs leave at once. */
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
	/* One waits, not two. */
	dut = written_to(1);
	expect_none(dut, polled, ENG_TX_ACK_DELAY);
	dut->now += US;
	dut_give_request(dut, WIRE_WRITE_ONLY, DUT_RQ_PSN + 1, 8);
	expect_burst(dut, polled, ENG_BURST_ACK, 1);
}

/* The ACK behind the message with this PSN waits, since the application has just posted. */
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

/* An ACK that would report no credits waits for a receive, and leaves as soon as there is one. */
static void test_ack_waits_for_receive(void **state)
{
	struct dut *dut = dut_rts((struct dut_config){ 0 });
	struct eng_tx_ctx post = polled;

	(void)state;
	post.trigger = ENG_TX_TRIGGER_POST;
	/*
	 * rules S7 and C10 test: but not before it is known that the application posts any behind a
	 * message, for it may end with the first one.
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
	/* Without one it leaves in time. */
	dut->now += MS;
	dut_give_request(dut, WIRE_SEND_ONLY, DUT_RQ_PSN + 2, 8);
	expect_none(dut, polled, ENG_TX_ACK_DELAY);
	dut->now += REPLY_WAIT_NS;
	expect_burst(dut, polled, ENG_BURST_ACK, 1);
}

/* An application that lets a stream of messages come and posts nothing is not waited for. */
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
	/* One that posts, also receives, is waited for again. */
	expect_post_awaited(dut, psn);
}

/* The rest of a message comes soon: its first packets' ACK waits for that, but not for long. */
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

/* A post on an idle wire leaves, one behind a stream is gathered until a burst is full. */
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
	/* The first that will make a completion ends a batch of many. */
	for (int i = 0; i < 17; i++)
		dut_post(dut, ENG_WRITE, 8, 0);
	dut_post(dut, ENG_WRITE, 8, ENG_SIGNALED);
	assert_int_equal(posted(dut, polled), ENG_TX_BURST);
}

/* Requests have to wait for those that came before them, answers do not. */
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
 * An ACK was due while a long message went, so none of it had AckReq when the share was used up.
 * Then that ACK has come: the message goes on before others, and asks for the one that makes room.
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
	/* A First is longer than what follows it. */
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

/* A transport that is nearly full takes ACKs and short bursts, and READ responses later. */
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
	/* The caller has to come back for them, whatever becomes of the requests. */
	expect_none(dut, full, ENG_TX_BACKPRESSURE);
	expect_burst(dut, polled, ENG_BURST_READ_ATOMIC_RESP, 1);
	dut_give_read(dut, DUT_RQ_PSN + 4, 0, 100);
	full.budget_waits = true;
	dut_post(dut, ENG_WRITE, 8, 0);
	expect_none(dut, full, ENG_TX_BACKPRESSURE);
	expect_burst(dut, polled, ENG_BURST_REQUESTS, 1);
	expect_burst(dut, polled, ENG_BURST_READ_ATOMIC_RESP, 1);
}

/* With much to send on both sides neither keeps the other waiting for more than a burst. */
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
 * Towards a window that was full a burst waits for a part of it; on a network it is a small one, as
 * a burst that comes at once fills a queue.
 */
static void test_full_window_opens(void **state)
{
	static const struct {
		bool network;
		uint32_t acked; /* packets that are not enough yet */
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
