/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* What a requester does about silence when packets have been lost shortly before. */
#include "peer.h"

/* Local ACK Timeout code 14: 4.096 us x 2^14. */
#define TIMEOUT (UINT64_C(4096) << 14)
#define FIRST_PROBE (300 * US)
#define SECOND UINT64_C(1000000000)

/* Four packets under way, the first has been asked for by a NAK and all sent again. */
static struct peer *after_loss(struct peer_config config, enum eng_op first)
{
	struct peer *peer;

	peer = peer_rts(config);
	peer_ack(peer, peer->config.sq_psn - 1, NO_CREDITS_REPORTED, 0);
	peer_post(peer, first, 8, ENG_SIGNALED);
	for (int i = 1; i < 4; i++)
		peer_post(peer, ENG_WRITE, 8, ENG_SIGNALED);
	peer_forget(peer);
	peer_nak(peer, PEER_SQ_PSN, NAK_SEQUENCE, 0);
	peer_pull(peer);
	assert_int_equal(peer->sent_count - peer->sent_read, 4);
	peer_forget(peer);
	return peer;
}

static uint64_t probes(struct peer *peer)
{
	return peer_view(peer).counters[ENG_COUNT_TAIL_LOSS_PROBES];
}

/* The oldest packet alone, asking for an ACK, at growing intervals; the timeout comes as ever. */
static void test_silence_is_probed(void **state)
{
	struct peer *peer = after_loss((struct peer_config){ 0 }, ENG_SEND);
	uint64_t start = peer->now;
	uint32_t retries = peer_view(peer).retries_left;

	(void)state;
	/* rule S10 test */
	for (uint64_t wait = FIRST_PROBE; wait < TIMEOUT; wait *= 2) {
		assert_true(eng_deadline(peer->qp) == start + wait);
		peer_advance(peer, start + wait - 1 - peer->now);
		expect_silence(peer);
		peer_advance(peer, 1);
		assert_true(expect_packet(peer, WIRE_SEND_ONLY, PEER_SQ_PSN)->ack_request);
		expect_silence(peer);
	}
	assert_int_equal(probes(peer), 8);
	assert_int_equal(peer_view(peer).retries_left, retries);
	assert_int_equal(peer_view(peer).counters[ENG_COUNT_TIMEOUTS], 0);
	assert_true(eng_deadline(peer->qp) == start + TIMEOUT);
	peer_advance_to_deadline(peer);
	assert_int_equal(peer_view(peer).counters[ENG_COUNT_TIMEOUTS], 1);
	assert_int_equal(peer_view(peer).retries_left, retries - 1);
	assert_int_equal(peer->sent_count - peer->sent_read, 4);
	/* From now on it has the word alone. */
	assert_true(eng_deadline(peer->qp) == peer->now + TIMEOUT);
}

/* The peer had got all, and its ACK was lost: nothing more is sent again. */
static void test_answer_of_who_has_all(void **state)
{
	struct peer *peer = after_loss((struct peer_config){ 0 }, ENG_SEND);

	(void)state;
	/* rule S7 test, rule S9 test */
	peer_advance_to_deadline(peer);
	expect_packet(peer, WIRE_SEND_ONLY, PEER_SQ_PSN);
	peer_ack(peer, PEER_SQ_PSN + 3, NO_CREDITS_REPORTED, 4);
	peer_pull(peer);
	expect_silence(peer);
	assert_int_equal(peer->wc_count, 4);
	assert_true(eng_deadline(peer->qp) == ENG_NEVER);
}

/* The peer had missed the oldest: what stands behind was thrown away and comes again. */
static void test_answer_of_who_missed_the_oldest(void **state)
{
	struct peer *peer = after_loss((struct peer_config){ 0 }, ENG_SEND);

	(void)state;
	/* rule S4 test, rule S10 test */
	peer_advance_to_deadline(peer);
	expect_packet(peer, WIRE_SEND_ONLY, PEER_SQ_PSN);
	peer_ack(peer, PEER_SQ_PSN, NO_CREDITS_REPORTED, 1);
	peer_pull(peer);
	for (uint32_t i = 1; i < 4; i++)
		expect_packet(peer, WIRE_WRITE_ONLY, PEER_SQ_PSN + i);
	expect_silence(peer);
	assert_int_equal(probes(peer), 1);
	/* The intervals begin anew. */
	assert_true(eng_deadline(peer->qp) == peer->now + FIRST_PROBE);
}

/* A NAK calls for all, not for one packet. */
static void test_nak_ends_a_probe(void **state)
{
	struct peer *peer = after_loss((struct peer_config){ 0 }, ENG_SEND);

	(void)state;
	/* rule S11 test */
	peer_advance_to_deadline(peer);
	expect_packet(peer, WIRE_SEND_ONLY, PEER_SQ_PSN);
	peer_nak(peer, PEER_SQ_PSN + 2, NAK_SEQUENCE, 2);
	peer_pull(peer);
	expect_packet(peer, WIRE_WRITE_ONLY, PEER_SQ_PSN + 2);
	expect_packet(peer, WIRE_WRITE_ONLY, PEER_SQ_PSN + 3);
	expect_silence(peer);
}

/* Who waits longer for every answer is given the time of some round trips. */
static void test_long_round_trips(void **state)
{
	struct peer *peer = peer_rts((struct peer_config){ 0 });

	(void)state;
	/* rule S10 test */
	peer_ack(peer, PEER_SQ_PSN - 1, NO_CREDITS_REPORTED, 0);
	for (uint32_t i = 0; i < 4; i++) {
		peer_post(peer, ENG_WRITE, 8, 0);
		peer_pull(peer);
		peer->now += 2 * MS;
		peer_ack(peer, PEER_SQ_PSN + i, NO_CREDITS_REPORTED, i + 1);
	}
	peer_post(peer, ENG_WRITE, 8, 0);
	peer_pull(peer);
	peer_nak(peer, PEER_SQ_PSN + 4, NAK_SEQUENCE, 4);
	peer_pull(peer);
	assert_true(eng_deadline(peer->qp) == peer->now + 4 * 2 * MS);
}

/* No probes: for READs and Atomics, without retries, and where nothing is lost any more. */
static void test_not_probed(void **state)
{
	struct peer *peer = after_loss((struct peer_config){ 0 }, ENG_READ);

	(void)state;
	/* rule S10 test */
	assert_true(eng_deadline(peer->qp) == peer->now + TIMEOUT);
	peer_teardown(NULL);

	peer = peer_rts((struct peer_config){ .retry_count = PEER_NO_RETRY });
	peer_post(peer, ENG_WRITE, 8, ENG_SIGNALED);
	peer_pull(peer);
	assert_true(eng_deadline(peer->qp) == peer->now + TIMEOUT);
	peer_teardown(NULL);

	peer = after_loss((struct peer_config){ 0 }, ENG_SEND);
	peer_ack(peer, PEER_SQ_PSN + 3, NO_CREDITS_REPORTED, 4);
	peer->now += SECOND - 1;
	peer_post(peer, ENG_WRITE, 8, ENG_SIGNALED);
	peer_pull(peer);
	assert_true(eng_deadline(peer->qp) == peer->now + FIRST_PROBE);
	peer_ack(peer, PEER_SQ_PSN + 4, NO_CREDITS_REPORTED, 5);
	peer->now += 1;
	peer_post(peer, ENG_WRITE, 8, ENG_SIGNALED);
	peer_pull(peer);
	assert_true(eng_deadline(peer->qp) == peer->now + TIMEOUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PEER_TEST(test_silence_is_probed),
		PEER_TEST(test_answer_of_who_has_all),
		PEER_TEST(test_answer_of_who_missed_the_oldest),
		PEER_TEST(test_nak_ends_a_probe),
		PEER_TEST(test_long_round_trips),
		PEER_TEST(test_not_probed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
