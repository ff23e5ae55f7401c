/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * When packets leave, for one who is asked in rounds as in production: what waits for company, for
 * how long, and what does not.
 */
#include "peer.h"

enum {
	ANSWER_WAIT_NS = 50 * US,
	REST_WAIT_NS = 10 * US,
};

static const struct eng_hint polled = {
	.occasion = ENG_ROUND,
	.sides = ENG_REQUESTS | ENG_RESPONSES,
	.polled = true,
	.watched = true,
};

/* Ask for one run, as hint says, at the time of the peer. */
static enum eng_tx ask(struct peer *peer, struct eng_run *run, struct eng_hint hint)
{
	*run = peer_empty_run(peer, 32);
	hint.now = peer->now;
	return eng_transmit(peer->qp, run, &hint);
}

static void expect_run(struct peer *peer, struct eng_hint hint, enum eng_run_kind kind,
		       uint32_t packets)
{
	struct eng_run run;

	assert_int_equal(ask(peer, &run, hint), ENG_TX_RUN);
	assert_int_equal(run.kind, kind);
	assert_int_equal(run.packets, packets);
}

static void expect_none(struct peer *peer, struct eng_hint hint, enum eng_tx reason)
{
	struct eng_run run;

	assert_int_equal(ask(peer, &run, hint), reason);
}

static enum eng_tx posted(struct peer *peer, struct eng_hint hint)
{
	hint.now = peer->now;
	return eng_posted(peer->qp, &hint);
}

/* A peer with nothing to say of credits, and n WRITEs received in this round. */
static struct peer *written_to(unsigned int n)
{
	const struct peer_config config = { .credits_hidden = true, .sq_slots = 256 };
	struct peer *peer = peer_rts(config);

	peer_ack(peer, PEER_SQ_PSN - 1, NO_CREDITS_REPORTED, 0);
	peer->now += MS;
	for (unsigned int i = 0; i < n; i++)
		peer_give_request(peer, WIRE_WRITE_ONLY, PEER_RQ_PSN + i, 8);
	return peer;
}

/* An ACK waits for an answer, leaves without one in time, and then the next does not wait. */
static void test_ack_waits_once(void **state)
{
	struct peer *peer = written_to(1);
	uint64_t began = peer->now;

	(void)state;
	/* rule S7 test */
	expect_none(peer, polled, ENG_TX_IDLE);
	assert_int_equal(eng_deadline(peer->qp), began + ANSWER_WAIT_NS);
	/* Asking again changes nothing. */
	expect_none(peer, polled, ENG_TX_IDLE);
	peer->now = began + ANSWER_WAIT_NS - 1;
	expect_none(peer, polled, ENG_TX_IDLE);
	peer->now = began + ANSWER_WAIT_NS;
	expect_run(peer, polled, ENG_RUN_ACK, 1);
	assert_true(eng_deadline(peer->qp) == ENG_NEVER);
	peer->now += MS;
	peer_give_request(peer, WIRE_WRITE_ONLY, PEER_RQ_PSN + 1, 8);
	expect_run(peer, polled, ENG_RUN_ACK, 1);
	/* Whoever answers is worth waiting for again. */
	peer_post(peer, ENG_WRITE, 8, 0);
	assert_int_equal(posted(peer, polled), ENG_TX_RUN);
	expect_run(peer, polled, ENG_RUN_REQUESTS, 1);
	peer->now += MS;
	peer_give_request(peer, WIRE_WRITE_ONLY, PEER_RQ_PSN + 2, 8);
	expect_none(peer, polled, ENG_TX_IDLE);
}

/* The answer takes the ACK along, and both come back when the run could not be sent. */
static void test_ack_rides(void **state)
{
	struct peer *peer = written_to(1);
	struct eng_run run;

	(void)state;
	/* rule S7 test */
	expect_none(peer, polled, ENG_TX_IDLE);
	peer_post(peer, ENG_WRITE, 100, 0);
	assert_int_equal(posted(peer, polled), ENG_TX_RUN);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ask(peer, &run, polled), ENG_TX_RUN);
		assert_int_equal(run.kind, ENG_RUN_REQUESTS);
		assert_int_equal(run.packets, 2);
		assert_true(run.ack_rides);
		assert_int_equal(eng_owed(peer->qp), ENG_OWED_NOTHING);
		if (i)
			break;
		eng_unsent(peer->qp, &run);
		assert_int_equal(eng_owed(peer->qp), ENG_OWED_SOON);
	}
	expect_none(peer, polled, ENG_TX_IDLE);
	/* What is smaller than an ACK cannot have it behind. */
	peer->now += MS;
	peer_give_request(peer, WIRE_WRITE_ONLY, PEER_RQ_PSN + 1, 8);
	peer_post(peer, ENG_SEND, 0, 0);
	assert_int_equal(ask(peer, &run, polled), ENG_TX_RUN);
	assert_false(run.ack_rides);
	expect_run(peer, polled, ENG_RUN_ACK, 1);
}

/* In a stream, in a long message, or where to wait would wake somebody, ACKs leave at once. */
static void test_ack_does_not_wait(void **state)
{
	struct eng_hint unwatched = polled, last = polled;
	struct peer *peer = written_to(3);

	(void)state;
	/* rule S7 test */
	unwatched.watched = false;
	last.occasion = ENG_LAST;
	expect_run(peer, polled, ENG_RUN_ACK, 1);
	peer = written_to(1);
	expect_run(peer, unwatched, ENG_RUN_ACK, 1);
	peer = written_to(1);
	expect_run(peer, last, ENG_RUN_ACK, 1);
	/* One waits, not two. */
	peer = written_to(1);
	expect_none(peer, polled, ENG_TX_IDLE);
	peer->now += US;
	peer_give_request(peer, WIRE_WRITE_ONLY, PEER_RQ_PSN + 1, 8);
	expect_run(peer, polled, ENG_RUN_ACK, 1);
}

/* An ACK that would report no credits waits for a receive, and leaves as soon as there is one. */
static void test_ack_waits_for_receive(void **state)
{
	struct peer *peer = peer_rts((struct peer_config){ 0 });
	struct eng_hint post = polled;

	(void)state;
	post.occasion = ENG_POST;
	/* rule C10 test */
	peer_post_recv(peer, 100);
	peer_forget(peer);
	peer->now += MS;
	peer_give_request(peer, WIRE_SEND_ONLY, PEER_RQ_PSN, 8);
	expect_none(peer, polled, ENG_TX_IDLE);
	assert_false(eng_receive_posted(peer->qp));
	peer_post_recv(peer, 100);
	assert_true(eng_receive_posted(peer->qp));
	expect_run(peer, post, ENG_RUN_ACK, 1);
	assert_false(eng_receive_posted(peer->qp));
	/* Without one it leaves in time. */
	peer->now += MS;
	peer_give_request(peer, WIRE_SEND_ONLY, PEER_RQ_PSN + 1, 8);
	expect_none(peer, polled, ENG_TX_IDLE);
	peer->now += ANSWER_WAIT_NS;
	expect_run(peer, polled, ENG_RUN_ACK, 1);
}

/* The rest of a message comes soon: its first packets' ACK waits for that, but not for long. */
static void test_ack_waits_for_rest(void **state)
{
	struct peer *peer = written_to(0);
	struct wire_packet first = peer_request(peer, WIRE_WRITE_FIRST, PEER_RQ_PSN, PEER_MTU);

	(void)state;
	/* rule S7 test */
	first.dma_length = 2 * PEER_MTU;
	peer_give(peer, &first);
	assert_int_equal(eng_owed(peer->qp), ENG_OWED_SOON);
	expect_none(peer, polled, ENG_TX_IDLE);
	assert_int_equal(eng_deadline(peer->qp), peer->now + REST_WAIT_NS);
	peer->now += REST_WAIT_NS;
	expect_run(peer, polled, ENG_RUN_ACK, 1);
}

/* A post on an idle wire leaves, one behind a stream is gathered until a run is full. */
static void test_posts_are_gathered(void **state)
{
	struct peer *peer = written_to(0);
	unsigned int gathered = 0;

	(void)state;
	peer_post(peer, ENG_WRITE, 8, 0);
	assert_int_equal(posted(peer, polled), ENG_TX_RUN);
	for (int i = 0; i < 17; i++)
		peer_post(peer, ENG_WRITE, 8, 0);
	peer_pull(peer);
	peer->now += US;
	for (;;) {
		peer_post(peer, ENG_WRITE, 8, 0);
		if (posted(peer, polled) != ENG_TX_GATHER)
			break;
		gathered++;
	}
	assert_uint_in_range(gathered, 100, 140);
	expect_run(peer, polled, ENG_RUN_REQUESTS, 32);
	peer_forget(peer);
	/* The first that will make a completion ends a batch of many. */
	for (int i = 0; i < 17; i++)
		peer_post(peer, ENG_WRITE, 8, 0);
	peer_post(peer, ENG_WRITE, 8, ENG_SIGNALED);
	assert_int_equal(posted(peer, polled), ENG_TX_RUN);
}

/* Requests have to wait for those that came before them, answers do not. */
static void test_share_waits(void **state)
{
	struct eng_hint waits = polled;
	struct peer *peer = written_to(3);

	(void)state;
	waits.share_waits = true;
	peer_post(peer, ENG_WRITE, 8, 0);
	assert_int_equal(posted(peer, waits), ENG_TX_SHARE);
	expect_run(peer, waits, ENG_RUN_ACK, 1);
	expect_none(peer, waits, ENG_TX_SHARE);
	expect_run(peer, polled, ENG_RUN_REQUESTS, 1);
}

/* A transport that is nearly full takes ACKs and short runs, and READ responses later. */
static void test_full_transport(void **state)
{
	struct eng_hint full = polled;
	struct peer *peer = written_to(3);

	(void)state;
	full.full = true;
	for (int i = 0; i < 9; i++)
		peer_post(peer, ENG_WRITE, 8, 0);
	expect_run(peer, full, ENG_RUN_ACK, 1);
	expect_none(peer, full, ENG_TX_FULL);
	expect_run(peer, polled, ENG_RUN_REQUESTS, 9);
	peer_post(peer, ENG_WRITE, 8, 0);
	expect_run(peer, full, ENG_RUN_REQUESTS, 1);
	peer_give_read(peer, PEER_RQ_PSN + 3, 0, 100);
	expect_none(peer, full, ENG_TX_IDLE);
	expect_run(peer, polled, ENG_RUN_ANSWERS, 1);
}

/* With much to send on both sides neither keeps the other waiting for more than a run. */
static void test_sides_take_turns(void **state)
{
	struct peer *peer = written_to(0);
	unsigned int answers = 0;

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		peer_give_read(peer, PEER_RQ_PSN + 8 * i, 0, 8 * PEER_MTU);
	for (int i = 0; i < 40; i++)
		peer_post(peer, ENG_WRITE, PEER_MTU, 0);
	for (int i = 0; i < 4; i++) {
		struct eng_run run = peer_empty_run(peer, 4);
		struct eng_hint hint = polled;

		hint.now = peer->now;
		assert_int_equal(eng_transmit(peer->qp, &run, &hint), ENG_TX_RUN);
		answers += run.kind == ENG_RUN_ANSWERS;
	}
	assert_int_equal(answers, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PEER_TEST(test_ack_waits_once),	    PEER_TEST(test_ack_rides),
		PEER_TEST(test_ack_does_not_wait),  PEER_TEST(test_ack_waits_for_receive),
		PEER_TEST(test_ack_waits_for_rest), PEER_TEST(test_posts_are_gathered),
		PEER_TEST(test_share_waits),	    PEER_TEST(test_full_transport),
		PEER_TEST(test_sides_take_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
