/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * How long ACKs are delayed, and which side sends first, at the boundaries of the numbers given in
 * the comments of tx_sched.c.  Batching of posts: test_engine_gather.c.
 */
#include "sched_fixture.h"

#include "engine/cc/cwnd.h"

/* ---- delayed ACKs ---- */

/* rule S7 test: the ACK is delayed unless more than two messages arrive in one progress cycle. */
static void test_ack_of_few_messages_waits(void **state)
{
	static const struct {
		int messages;
		bool waits;
	} rows[] = { { 1, true }, { 2, true }, { 3, false }, { 9, false } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t due;

		sched_start_again(ENG_RC, MTU);
		for (int k = 0; k < rows[i].messages; k++)
			sched_receive_message();
		if (rows[i].waits)
			sched_expect_nothing(ENG_TX_ACK_DELAY);
		else
			sched_expect_kind(ENG_BURST_ACK);
		due = rows[i].waits ? sched_hint.now + REPLY_WAIT_NS : ENG_NEVER;
		assert_true(eng_deadline(sched_fixture.qp) == due);
		assert_false(eng_deadline_before(sched_fixture.qp, due));
		assert_int_equal(
			eng_deadline_before(sched_fixture.qp, sched_hint.now + REPLY_WAIT_NS + 1),
			rows[i].waits);
	}
}

/*
 * rule S7 test: within a long message the ACK is delayed until more than 16 packets are
 * unacknowledged.
 */
static void test_ack_amid_long_message(void **state)
{
	(void)state;
	for (int packets = 16; packets <= 17; packets++) {
		sched_start_again(ENG_RC, MTU);
		sched_receive_packet(WIRE_WRITE_FIRST, LONG);
		for (int i = 1; i < packets; i++)
			sched_receive_packet(WIRE_WRITE_MIDDLE, LONG);
		if (packets == 16)
			sched_expect_nothing(ENG_TX_ACK_DELAY);
		else
			sched_expect_kind(ENG_BURST_ACK);
	}
	/* The packets are counted from the last ACK on. */
	for (int i = 0; i < 16; i++)
		sched_receive_packet(WIRE_WRITE_MIDDLE, LONG);
	sched_expect_nothing(ENG_TX_ACK_DELAY);
}

/*
 * rule S7 test: an ACK that was delayed for the rest of a message may be delayed for a reply once
 * the rest has arrived.
 */
static void test_ack_waits_for_rest_then_for_answer(void **state)
{
	uint64_t began = sched_hint.now;

	(void)state;
	sched_receive_packet(WIRE_WRITE_FIRST, 3);
	sched_expect_nothing(ENG_TX_ACK_DELAY);
	assert_int_equal(eng_deadline(sched_fixture.qp), began + REST_WAIT_NS);
	/* Another packet of the message does not prolong the delay. */
	sched_hint.now = began + REST_WAIT_NS / 2;
	sched_receive_packet(WIRE_WRITE_MIDDLE, 3);
	sched_expect_nothing(ENG_TX_ACK_DELAY);
	assert_int_equal(eng_deadline(sched_fixture.qp), began + REST_WAIT_NS);
	sched_hint.now = began + REST_WAIT_NS - 1;
	sched_receive_packet(WIRE_WRITE_LAST, 3);
	sched_expect_nothing(ENG_TX_ACK_DELAY);
	assert_int_equal(eng_deadline(sched_fixture.qp), sched_hint.now + REPLY_WAIT_NS);
	sched_hint.now += REPLY_WAIT_NS;
	sched_expect_kind(ENG_BURST_ACK);
	assert_true(eng_deadline(sched_fixture.qp) == ENG_NEVER);
}

/*
 * rule S7 test: after nine messages without a post no reply is expected, and the ACK is not
 * delayed.
 */
static void test_ack_behind_messages_without_post(void **state)
{
	(void)state;
	for (int before = 7; before <= 8; before++) {
		sched_start_again(ENG_RC, MTU);
		sched_hint.trigger = ENG_TX_TRIGGER_FINAL;
		for (int i = 0; i < before; i++) {
			sched_receive_message();
			sched_expect_kind(ENG_BURST_ACK);
			sched_hint.now += 1000000;
		}
		sched_hint.trigger = ENG_TX_TRIGGER_POLL;
		sched_receive_message();
		if (before == 7)
			sched_expect_nothing(ENG_TX_ACK_DELAY);
		else
			sched_expect_kind(ENG_BURST_ACK);
	}
}

/*
 * rule S7 test: if the application replies to SENDs but not to WRITEs, the ACK of a WRITE is sent
 * at once.  With UCX each exchange of SENDs ends with a WRITE of no bytes.
 */
static void test_ack_of_write_that_is_never_answered(void **state)
{
	(void)state;
	for (int exchange = 0; exchange < 3; exchange++) {
		sched_receive_send();
		sched_expect_nothing(ENG_TX_ACK_DELAY);
		sched_post(8);
		assert_true(sched_leave(BURST_PACKETS).has_ack);
		sched_acknowledge_all_but(0);
		sched_hint.now += 1000000;
		sched_receive_message();
		if (exchange == 0) {
			sched_expect_nothing(ENG_TX_ACK_DELAY);
			sched_hint.now += REPLY_WAIT_NS;
		}
		sched_expect_kind(ENG_BURST_ACK);
		sched_hint.now += 1000000;
	}
	/* Once a post has followed a WRITE, the ACK of the next WRITE is delayed again. */
	sched_post(8);
	sched_leave_all();
	sched_acknowledge_all_but(0);
	sched_hint.now += 1000000;
	sched_receive_message();
	sched_expect_nothing(ENG_TX_ACK_DELAY);
}

/* rule S7 test: the ACK of a queue pair that cannot post is not delayed for a post. */
static void test_ack_of_xrc_target_leaves(void **state)
{
	(void)state;
	sched_start_again(ENG_XRC_RECV, MTU);
	sched_fixture.qp->tx_sched.since_post = 0;
	sched_receive_message();
	sched_expect_kind(ENG_BURST_ACK);
}

/* rule S7 test: responses are not messages: however many arrive, the ACK is delayed as long. */
static void test_responses_do_not_hurry_ack(void **state)
{
	uint64_t began;

	(void)state;
	sched_stream_of(8);
	sched_hint.now += 1;
	began = sched_hint.now;
	sched_receive_message();
	sched_expect_nothing(ENG_TX_ACK_DELAY);
	for (uint32_t i = 1; i <= 9; i++) {
		sched_hint.now = began + i;
		sched_acknowledge_all_but(STREAM + 1 - i);
		sched_expect_nothing(ENG_TX_ACK_DELAY);
		assert_int_equal(tx_sched_deadline(sched_fixture.qp), began + REPLY_WAIT_NS);
	}
	sched_hint.now = began + REPLY_WAIT_NS;
	sched_expect_kind(ENG_BURST_ACK);
}

/* The deadline is the earlier one of the delayed ACK and the timer of the request in flight. */
static void test_earliest_deadline(void **state)
{
	uint64_t timer;

	(void)state;
	sched_fixture.qp->attr.timeout_code = 14;
	sched_post(8);
	sched_leave(BURST_PACKETS);
	timer = eng_timer(sched_fixture.qp);
	assert_true(timer > sched_hint.now && timer < ENG_NEVER);
	assert_int_equal(eng_deadline(sched_fixture.qp), timer);
	for (int later = 0; later < 2; later++) {
		/*
		 * An ACK that is delayed from this time on is due just before the timer, or with
		 * it.
		 */
		sched_hint.now = timer - REPLY_WAIT_NS - (later ? 0 : 1);
		sched_receive_message();
		sched_expect_nothing(ENG_TX_ACK_DELAY);
		assert_int_equal(tx_sched_deadline(sched_fixture.qp), timer - (later ? 0 : 1));
		assert_int_equal(eng_timer(sched_fixture.qp), timer);
		assert_int_equal(eng_deadline(sched_fixture.qp), timer - (later ? 0 : 1));
		assert_false(eng_deadline_before(sched_fixture.qp, eng_deadline(sched_fixture.qp)));
		assert_true(
			eng_deadline_before(sched_fixture.qp, eng_deadline(sched_fixture.qp) + 1));
		sched_hint.trigger = ENG_TX_TRIGGER_FINAL;
		sched_expect_kind(ENG_BURST_ACK);
		sched_hint.trigger = ENG_TX_TRIGGER_POLL;
		assert_int_equal(eng_deadline(sched_fixture.qp), timer);
	}
}

/* rule S7 test: a delayed ACK is added to the last burst of a reply, and not to an earlier one. */
static void test_ack_rides_behind_whole_answer(void **state)
{
	(void)state;
	sched_receive_message();
	sched_expect_nothing(ENG_TX_ACK_DELAY);
	/* A longer packet begins a burst of its own. */
	for (uint32_t bytes = 100; bytes <= 300; bytes += 100)
		sched_post(bytes);
	for (int burst = 0; burst < 3; burst++) {
		struct eng_burst sent = sched_leave(BURST_PACKETS);

		assert_int_equal(sent.kind, ENG_BURST_REQUESTS);
		assert_int_equal(sent.packets, burst == 2 ? 2 : 1);
		assert_int_equal(sent.has_ack, burst == 2);
		assert_int_equal(sent.last, burst == 2);
		assert_int_equal(eng_resp_pending(sched_fixture.qp),
				 burst == 2 ? ENG_RESP_NONE : ENG_RESP_DELAYABLE);
	}
	assert_true(tx_sched_deadline(sched_fixture.qp) == ENG_NEVER);
}

/* ---- which side goes first ---- */

enum owed {
	OWED_NOTHING,
	OWED_READ,
	OWED_READ_BEHIND,
	OWED_NAK,
	OWED_FOR_REST,
	OWED_FOR_ANSWER,
	OWED_OVERDUE
};

static void owe(enum owed owed)
{
	switch (owed) {
	case OWED_NOTHING:
		break;
	case OWED_READ:
		sched_receive_read();
		break;
	case OWED_READ_BEHIND: /* after an ACK that is delayed for a reply */
		owe(OWED_FOR_ANSWER);
		sched_receive_read();
		break;
	case OWED_NAK:
		sched_their_psn += 5;
		sched_receive_message();
		break;
	case OWED_FOR_REST:
		sched_receive_packet(WIRE_WRITE_FIRST, LONG);
		sched_expect_nothing(ENG_TX_ACK_DELAY);
		break;
	case OWED_FOR_ANSWER:
	case OWED_OVERDUE:
		sched_receive_message();
		sched_expect_nothing(ENG_TX_ACK_DELAY);
		sched_hint.now += REPLY_WAIT_NS - (owed == OWED_FOR_ANSWER);
		break;
	}
}

/* Requests were sent last, and more are posted: the pending response goes before or after them. */
static void test_what_goes_first(void **state)
{
	static const struct {
		enum owed owed;
		enum eng_tx_trigger trigger;
		enum eng_burst_kind kind;
		bool rides;
	} rows[] = {
		{ OWED_NOTHING, ENG_TX_TRIGGER_POLL, ENG_BURST_REQUESTS, false },
		/* A response that the peer waits for is sent, on every trigger. */
		{ OWED_READ, ENG_TX_TRIGGER_POLL, ENG_BURST_READ_ATOMIC_RESP, false },
		{ OWED_READ, ENG_TX_TRIGGER_POST, ENG_BURST_READ_ATOMIC_RESP, false },
		{ OWED_READ, ENG_TX_TRIGGER_FINAL, ENG_BURST_READ_ATOMIC_RESP, false },
		{ OWED_READ_BEHIND, ENG_TX_TRIGGER_POLL, ENG_BURST_ACK, false },
		{ OWED_READ_BEHIND, ENG_TX_TRIGGER_POST, ENG_BURST_ACK, false },
		{ OWED_NAK, ENG_TX_TRIGGER_POLL, ENG_BURST_NAK, false },
		{ OWED_NAK, ENG_TX_TRIGGER_POST, ENG_BURST_NAK, false },
		/*
		 * The ACK within a message is delayed by polls only: then it is sent with requests.
		 */
		{ OWED_FOR_REST, ENG_TX_TRIGGER_POLL, ENG_BURST_REQUESTS, true },
		{ OWED_FOR_REST, ENG_TX_TRIGGER_FINAL, ENG_BURST_ACK, false },
		/* An ACK that is delayed for a reply is sent after the requests. */
		{ OWED_FOR_ANSWER, ENG_TX_TRIGGER_POLL, ENG_BURST_REQUESTS, true },
		{ OWED_FOR_ANSWER, ENG_TX_TRIGGER_POST, ENG_BURST_REQUESTS, true },
		{ OWED_FOR_ANSWER, ENG_TX_TRIGGER_FINAL, ENG_BURST_REQUESTS, true },
		/*
		 * But when its delay is over it goes first, unless the reply is posted just then.
		 */
		{ OWED_OVERDUE, ENG_TX_TRIGGER_POLL, ENG_BURST_ACK, false },
		{ OWED_OVERDUE, ENG_TX_TRIGGER_POST, ENG_BURST_REQUESTS, true },
		{ OWED_OVERDUE, ENG_TX_TRIGGER_FINAL, ENG_BURST_ACK, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct eng_burst burst;

		sched_start_again(ENG_RC, MTU);
		sched_post(MTU);
		sched_leave(BURST_PACKETS);
		sched_acknowledge_all_but(0);
		sched_hint.now += 1000;
		owe(rows[i].owed);
		sched_post(MTU);
		sched_hint.trigger = rows[i].trigger;
		burst = sched_leave(BURST_PACKETS);
		if (burst.kind != rows[i].kind || burst.has_ack != rows[i].rides)
			fail_msg("row %zu: kind %d, rides %d", i, burst.kind, burst.has_ack);
		/* The other side is next, and then nothing is left. */
		sched_hint.trigger = ENG_TX_TRIGGER_FINAL;
		if (burst.kind != ENG_BURST_REQUESTS)
			sched_expect_kind(ENG_BURST_REQUESTS);
		if (rows[i].owed == OWED_READ_BEHIND)
			sched_expect_kind(ENG_BURST_READ_ATOMIC_RESP);
		sched_expect_nothing(ENG_TX_IDLE);
		assert_int_equal(eng_resp_pending(sched_fixture.qp), ENG_RESP_NONE);
	}
}

/*
 * Requests go first if they were not sent last, and the sides alternate while both have much to
 * send.
 */
static void test_sides_alternate(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		sched_receive_read();
	for (int i = 0; i < 12; i++)
		sched_post(MTU);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(sched_leave(1).kind, ENG_BURST_REQUESTS);
		assert_int_equal(sched_leave(1).kind, ENG_BURST_READ_ATOMIC_RESP);
	}
	assert_false(sched_leave(8).last);
	assert_true(sched_leave(8).last);
}

/* Only the sides that the caller names are sent. */
static void test_sides_that_are_wanted(void **state)
{
	(void)state;
	sched_receive_read();
	sched_post(MTU);
	sched_hint.sides = ENG_RESPONSES;
	sched_expect_kind(ENG_BURST_READ_ATOMIC_RESP);
	sched_expect_nothing(ENG_TX_IDLE);
	sched_receive_read();
	sched_hint.sides = ENG_REQUESTS;
	sched_expect_kind(ENG_BURST_REQUESTS);
	sched_expect_nothing(ENG_TX_IDLE);
	assert_int_equal(eng_resp_pending(sched_fixture.qp), ENG_RESP_IMMEDIATE);
	/* No ACK is added to requests if the caller does not name responses. */
	sched_hint.sides = ENG_REQUESTS | ENG_RESPONSES;
	sched_expect_kind(ENG_BURST_READ_ATOMIC_RESP);
	sched_receive_message();
	sched_post(MTU);
	sched_hint.sides = ENG_REQUESTS;
	assert_false(sched_leave(BURST_PACKETS).has_ack);
	assert_int_equal(eng_resp_pending(sched_fixture.qp), ENG_RESP_DELAYABLE);
}

/*
 * After the congestion window was full, requests wait until a part of it is free, except in a call
 * after which no other may follow.
 */
static void test_window_is_not_waited_for_at_the_end(void **state)
{
	(void)state;
	sched_start_again(ENG_RC, 4096);
	while (eng_ring_used(sched_fixture.qp->sq) < SLOTS)
		sched_post(4096);
	sched_hint.trigger = ENG_TX_TRIGGER_FINAL;
	do {
		sched_leave(BURST_PACKETS);
	} while (cwnd_room(sched_fixture.qp) > 2 * 4096);
	sched_hint.trigger = ENG_TX_TRIGGER_POLL;
	sched_acknowledge_all_but(eng_in_flight(sched_fixture.qp) - 1);
	sched_expect_nothing(ENG_TX_CWND);
	sched_hint.trigger = ENG_TX_TRIGGER_POST;
	sched_expect_nothing(ENG_TX_CWND);
	sched_hint.trigger = ENG_TX_TRIGGER_FINAL;
	sched_expect_kind(ENG_BURST_REQUESTS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCHED_TEST(test_ack_of_few_messages_waits),
		SCHED_TEST(test_ack_amid_long_message),
		SCHED_TEST(test_ack_waits_for_rest_then_for_answer),
		SCHED_TEST(test_ack_behind_messages_without_post),
		SCHED_TEST(test_ack_of_write_that_is_never_answered),
		SCHED_TEST(test_ack_of_xrc_target_leaves),
		SCHED_TEST(test_responses_do_not_hurry_ack),
		SCHED_TEST(test_earliest_deadline),
		SCHED_TEST(test_ack_rides_behind_whole_answer),
		SCHED_TEST(test_what_goes_first),
		SCHED_TEST(test_sides_alternate),
		SCHED_TEST(test_sides_that_are_wanted),
		SCHED_TEST(test_window_is_not_waited_for_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
