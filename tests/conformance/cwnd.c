/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* How much may be under way: of one queue pair, and of all that share a socket. */
#include "peer.h"

static struct peer *unlimited(struct peer_config config)
{
	struct peer *peer = peer_rts(config);

	peer_ack(peer, peer->config.sq_psn - 1, NO_CREDITS_REPORTED, 0);
	return peer;
}

/* The window closes with an ACK asked for, and opens with that ACK. */
static void test_window(void **state)
{
	struct peer *peer = unlimited((struct peer_config){ .cwnd = 8, .mtu = 4096 });
	unsigned int sent;

	(void)state;
	/* rule S3 test */
	for (int i = 0; i < 10; i++)
		peer_post(peer, ENG_WRITE, 4 * 4096, ENG_SIGNALED);
	peer_pull(peer);
	assert_int_equal(peer->why, ENG_TX_CWND);
	sent = peer->sent_count;
	assert_uint_in_range(sent, 4, 8);
	assert_int_equal(eng_in_flight(peer->qp), sent);
	assert_true(peer->sent[sent - 1].packet.ack_request);
	peer_ack(peer, PEER_SQ_PSN + sent - 1, NO_CREDITS_REPORTED, sent / 4);
	peer_pull(peer);
	assert_true(peer->sent_count > sent);
}

/* Does what is to be sent wait until the window has room for a full run? */
static bool waits_for_room(struct peer *peer)
{
	const struct eng_hint hint = { .now = peer->now,
				       .occasion = ENG_POST,
				       .sides = ENG_REQUESTS };
	struct eng_run run = peer_empty_run(peer, 15);
	enum eng_tx reason = eng_transmit(peer->qp, &run, &hint);

	if (reason == ENG_TX_RUN)
		eng_unsent(peer->qp, &run);
	return reason == ENG_TX_CWND;
}

/* A window that was full is used again when a run fits, but never waits without an ACK to come. */
static void test_room_for_a_run(void **state)
{
	struct peer *peer = unlimited((struct peer_config){ .cwnd = 64, .mtu = 4096 });
	unsigned int sent;

	(void)state;
	/* rule S3 test */
	for (int i = 0; i < 40; i++)
		peer_post(peer, ENG_WRITE, 4 * 4096, 0);
	assert_false(waits_for_room(peer));
	peer_pull(peer);
	assert_int_equal(peer->why, ENG_TX_CWND);
	sent = peer->sent_count;
	assert_true(sent >= 40);
	peer_ack(peer, PEER_SQ_PSN + 9, NO_CREDITS_REPORTED, 2);
	assert_true(waits_for_room(peer));
	peer_ack(peer, PEER_SQ_PSN + 19, NO_CREDITS_REPORTED, 5);
	assert_false(waits_for_room(peer));
	/* All that was asked for is answered: waiting would be for ever. */
	peer_ack(peer, PEER_SQ_PSN + sent - 1, NO_CREDITS_REPORTED, sent / 4);
	assert_false(waits_for_room(peer));
	/* What is sent again does not count as under way. */
	peer_pull(peer);
	peer_nak(peer, PEER_SQ_PSN + sent + 1, NAK_SEQUENCE, sent / 4);
	assert_false(waits_for_room(peer));
}

/* A full window that is lost as a whole is sent again, each time, though the window shrinks. */
static void test_lost_window(void **state)
{
	struct peer *peer = unlimited((struct peer_config){ .cwnd = 32, .mtu = 4096 });
	uint32_t full, acked = 0;

	(void)state;
	/* rule S10 test, rule S3 test */
	for (int i = 0; i < 60; i++)
		peer_post(peer, ENG_WRITE, 4096, ENG_SIGNALED);
	peer_pull(peer);
	assert_int_equal(peer->why, ENG_TX_CWND);
	full = peer->sent_count;
	assert_uint_in_range(full, 16, 32);
	for (int round = 0; round < 12; round++) {
		peer_forget(peer);
		assert_true(peer_advance_to_deadline(peer));
		assert_uint_in_range(peer->sent_count - peer->sent_read, 1, full);
		assert_int_equal(peer->sent[peer->sent_read].packet.psn, PEER_SQ_PSN + acked);
		/* Three times nothing comes back, then one ACK in each round. */
		if (round >= 3)
			peer_ack(peer, PEER_SQ_PSN + acked++, NO_CREDITS_REPORTED, 0);
	}
	assert_int_equal(peer->wc_count, acked);
}

/* What all queue pairs have under way is added and taken off again, whatever happens to it. */
static void test_share_returns_to_zero(void **state)
{
	struct eng_cwnd_share share = { .limit = 1 << 20 };
	struct peer *first = unlimited((struct peer_config){ .share = &share });
	struct peer *second = unlimited((struct peer_config){ .share = &share });
	struct peer *third = unlimited((struct peer_config){ .share = &share });
	uint64_t one;

	(void)state;
	/* rule S3 test */
	assert_true(share.under_way == 0);
	peer_post(first, ENG_WRITE, 3 * PEER_MTU, 0);
	peer_pull(first);
	one = share.under_way;
	assert_true(one >= 3 * PEER_MTU);
	peer_post(second, ENG_WRITE, 3 * PEER_MTU, 0);
	peer_post(third, ENG_READ, 3 * PEER_MTU, 0);
	peer_pull(second);
	peer_pull(third);
	assert_true(share.under_way > 2 * one);
	/* Acknowledged in part, lost and sent again, acknowledged. */
	peer_ack(first, PEER_SQ_PSN, NO_CREDITS_REPORTED, 0);
	peer_nak(first, PEER_SQ_PSN + 1, NAK_SEQUENCE, 0);
	peer_pull(first);
	peer_advance_to_deadline(first);
	peer_ack(first, PEER_SQ_PSN + 2, NO_CREDITS_REPORTED, 1);
	peer_set_state(second, ENG_ERR);
	assert_true(share.under_way > 0);
	peer_set_state(third, ENG_RESET);
	assert_true(share.under_way == 0);
}

/* A full share holds up those who have something under way, and nobody else. */
static void test_full_share(void **state)
{
	struct eng_cwnd_share share = { .limit = 2 * PEER_MTU };
	struct peer *first = unlimited((struct peer_config){ .share = &share });
	struct peer *second = unlimited((struct peer_config){ .share = &share });

	(void)state;
	/* rule S3 test */
	peer_post(first, ENG_SEND, 3 * PEER_MTU, ENG_SIGNALED); /* one run */
	peer_pull(first);
	assert_int_equal(first->sent_count, 3);
	peer_post(first, ENG_WRITE, 8, 0);
	peer_pull(first);
	assert_int_equal(first->sent_count, 3);
	assert_int_equal(first->why, ENG_TX_SHARE);
	peer_post(second, ENG_WRITE, 8, 0);
	peer_pull(second);
	assert_int_equal(second->sent_count, 1);
	peer_ack(first, PEER_SQ_PSN + 2, NO_CREDITS_REPORTED, 1);
	peer_pull(first);
	assert_int_equal(first->sent_count, 4);
}

/* UC has no ACKs: what has left is not under way any more. */
static void test_share_of_uc(void **state)
{
	struct eng_cwnd_share share = { .limit = 1 << 20 };
	struct peer *peer = peer_rts((struct peer_config){ .type = ENG_UC, .share = &share });

	(void)state;
	/* rule S3 test */
	for (int i = 0; i < 5; i++)
		peer_post(peer, ENG_SEND, 3 * PEER_MTU, ENG_SIGNALED);
	peer_pull(peer);
	assert_int_equal(peer->sent_count, 15);
	assert_true(share.under_way == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PEER_TEST(test_window),	     PEER_TEST(test_room_for_a_run),
		PEER_TEST(test_lost_window), PEER_TEST(test_share_returns_to_zero),
		PEER_TEST(test_full_share),  PEER_TEST(test_share_of_uc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
