/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Which posts are sent at once and which are batched, and what ends a batch.  The tables of
 * situations check the statements of the comments in tx_sched.h and tx_sched.c, at the boundaries
 * of the numbers given there; the situations are made by posts, bursts and packets, as in
 * production.
 */
#include "sched_fixture.h"

/* ---- which posts are batched ---- */

enum flying { NONE, FEW, MANY, FLYING };

/* Possible state when a request is posted. */
struct situation {
	enum flying flying; /* packets in flight: none, 16, or 17 */
	bool stream;	    /* earlier posts came in bursts */
	bool polled;
	bool heard;  /* a packet has been received since the last burst */
	bool asked;  /* one of the packets in flight has AckReq */
	bool passed; /* a progress cycle has passed since the last burst */
};

/* Required value of a field of struct situation; ANY: it does not matter. */
enum { NO, YES, ANY };

static const struct sentence {
	int flying, stream, polled, heard, asked, passed;
	enum eng_tx answer;
	const char *why;
} sentences[] = {
	{ NONE, NO, ANY, ANY, ANY, ANY, ENG_TX_BURST, "on an idle wire a post leaves at once" },
	{ NONE, YES, YES, ANY, ANY, ANY, ENG_TX_BATCH, "it will post the next burst now" },
	{ NONE, YES, NO, ANY, ANY, ANY, ENG_TX_BURST, "without a poll the next round may be far" },
	{ FEW, NO, NO, ANY, ANY, ANY, ENG_TX_BURST, "without polls only streams are gathered" },
	{ FEW, ANY, NO, ANY, NO, ANY, ENG_TX_BURST, "no ACK would bring it back" },
	{ MANY, ANY, NO, ANY, NO, ANY, ENG_TX_BURST, "no ACK would bring it back" },
	{ FEW, YES, NO, ANY, YES, ANY, ENG_TX_BATCH, "a stream whose ACK is on its way" },
	{ MANY, ANY, NO, ANY, YES, ANY, ENG_TX_BATCH, "a stream whose ACK is on its way" },
	{ MANY, ANY, YES, ANY, ANY, ANY, ENG_TX_BATCH, "in a stream the next round sends all" },
	{ FEW, ANY, YES, YES, ANY, ANY, ENG_TX_BURST, "an answer does not wait for an ACK" },
	{ FEW, ANY, YES, NO, YES, ANY, ENG_TX_BATCH, "the ACK comes in the next round" },
	{ FEW, ANY, YES, NO, NO, NO, ENG_TX_BATCH, "packets just sent have not arrived" },
	{ FEW, ANY, YES, NO, NO, YES, ENG_TX_BURST, "they may have arrived long ago" },
};

static bool matches(const struct sentence *sentence, const struct situation *situation)
{
	return sentence->flying == (int)situation->flying &&
	       (sentence->stream == ANY || sentence->stream == situation->stream) &&
	       (sentence->polled == ANY || sentence->polled == situation->polled) &&
	       (sentence->heard == ANY || sentence->heard == situation->heard) &&
	       (sentence->asked == ANY || sentence->asked == situation->asked) &&
	       (sentence->passed == ANY || sentence->passed == situation->passed);
}

/*
 * Posts sent in one burst make later posts a stream as well, but each further burst halves their
 * number: a quarter of it counts after two more bursts.
 */
static void make(const struct situation *situation)
{
	uint32_t under_way = situation->flying == NONE	? 0
			     : situation->flying == FEW ? STREAM
							: STREAM + 1;

	for (int i = 0; i < 4 * STREAM + (situation->stream ? 4 : 3); i++)
		sched_post(8);
	sched_leave(BURST_PACKETS);
	sched_acknowledge_all_but(0);
	sched_hint.round++;
	sched_post(under_way ? under_way * MTU : 3 * MTU);
	sched_leave_all();
	if (situation->flying == NONE)
		sched_acknowledge_all_but(0);
	else
		sched_fixture.qp->req.ackreq_psn =
			psn_sub(situation->asked ? sched_fixture.qp->req.next_psn
						 : sched_fixture.qp->req.unacked_psn,
				1);
	assert_int_equal(eng_in_flight(sched_fixture.qp), under_way);
	if (situation->heard)
		sched_receive_message();
	sched_hint.polled = situation->polled;
	sched_hint.round += situation->passed;
}

/*
 * Every situation matches at least one of the sentences, and all that match agree with the result.
 */
static void test_which_posts_are_gathered(void **state)
{
	enum { COUNT = sizeof(sentences) / sizeof(sentences[0]) };
	unsigned int used[COUNT] = { 0 };

	(void)state;
	for (unsigned int i = 0; i < FLYING << 5; i++) {
		const struct situation situation = {
			.flying = (enum flying)(i >> 5),
			.stream = i & 1,
			.polled = i & 2,
			.heard = i & 4,
			.asked = i & 8,
			.passed = i & 16,
		};
		enum eng_tx answer;
		bool known = false;

		sched_start_again(ENG_RC, MTU);
		make(&situation);
		answer = sched_post(8);
		for (unsigned int k = 0; k < COUNT; k++) {
			if (!matches(&sentences[k], &situation))
				continue;
			known = true;
			used[k]++;
			if (answer != sentences[k].answer)
				fail_msg("situation %#x: %s, but %s", i, eng_tx_name(answer),
					 sentences[k].why);
		}
		assert_true(known);
	}
	for (unsigned int k = 0; k < COUNT; k++)
		assert_true(used[k] > 0);
}

/* ---- what ends a batch ---- */

static unsigned int posts_until_one_leaves(uint32_t bytes)
{
	unsigned int posts = 1;

	while (sched_post(bytes) == ENG_TX_BATCH)
		posts++;
	return posts;
}

/*
 * A batch ends after as many posts as fill a burst of packets of the size sent last, or after few
 * posts in shared memory.
 */
static void test_number_ends_batch(void **state)
{
	static const struct {
		uint32_t bytes; /* of each message */
		bool shared_memory;
		unsigned int posts;
	} rows[] = {
		/* BTH, RETH and ICRC are 32 bytes: 128 packets of 40 take less than a datagram. */
		{ 8, false, 128 },
		{ 512, false, BURST_BYTES / 544 },
		{ 1024, false, BURST_BYTES / 1056 },
		{ 4096, false, 15 },
		{ 8, true, 16 },
		{ 4096, true, 16 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		sched_start_again(ENG_RC, 4096);
		eng_set_path_loss(sched_fixture.qp,
				  rows[i].shared_memory ? ENG_PATH_LOSSLESS : ENG_PATH_USUAL);
		sched_stream_of(rows[i].bytes);
		assert_int_equal(posts_until_one_leaves(rows[i].bytes), rows[i].posts);
		/* Until the batch is sent, each further post is a reason to send it. */
		assert_int_equal(sched_post(rows[i].bytes), ENG_TX_BURST);
		if (rows[i].bytes > 8)
			continue;
		/* A burst begins the next batch. */
		sched_leave_all();
		assert_int_equal(sched_post(8), ENG_TX_BATCH);
	}
	/* The last burst counts, not the first one. */
	sched_start_again(ENG_RC, 4096);
	sched_stream_of(8);
	sched_stream_of(1024);
	assert_int_equal(posts_until_one_leaves(8), BURST_BYTES / 1056);
	/*
	 * Before the first burst: about as many posts as a burst has packets of the largest size.
	 */
	sched_start_again(ENG_RC, 4096);
	sched_fixture.qp->tx_sched.gathered_before = STREAM + 1;
	assert_int_equal(posts_until_one_leaves(8), STREAM);
}

/* The first signaled post of a batch ends it, if more than 16 packets are unsent. */
static void test_first_signal_ends_batch(void **state)
{
	static const struct {
		bool signal_all;
		int before;  /* posts of one packet without ENG_SIGNALED */
		int between; /* such posts after the first with it */
		enum eng_tx first, second;
	} rows[] = {
		{ false, 15, 40, ENG_TX_BATCH, ENG_TX_BATCH },
		{ false, 16, 40, ENG_TX_BURST, ENG_TX_BATCH },
		{ false, 0, 40, ENG_TX_BATCH, ENG_TX_BATCH },
		/* All posts are signaled, and the very first has none before it. */
		{ true, 0, 40, ENG_TX_BATCH, ENG_TX_BATCH },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (int batch = 0; batch < 2; batch++) {
			if (batch == 0) {
				sched_start_again(ENG_RC, MTU);
				sched_fixture.qp->signal_all = rows[i].signal_all;
				sched_stream_of(8);
			} else {
				/* The next batch begins with the burst that ends this one. */
				sched_leave(BURST_PACKETS);
			}
			for (int k = 0; k < rows[i].before; k++)
				assert_int_equal(sched_post(8), ENG_TX_BATCH);
			sched_push(ENG_WRITE, 8, ENG_SIGNALED);
			assert_int_equal(eng_sq_kick(sched_fixture.qp, &sched_hint), rows[i].first);
			for (int k = 0; k < rows[i].between; k++)
				assert_int_equal(sched_post(8), ENG_TX_BATCH);
			sched_push(ENG_WRITE, 8, ENG_SIGNALED);
			assert_int_equal(eng_sq_kick(sched_fixture.qp, &sched_hint),
					 rows[i].second);
		}
	}
}

/* The progress cycle that receives an ACK sends the whole batch, in one burst. */
static void test_round_sends_all_that_was_gathered(void **state)
{
	struct eng_burst burst;

	(void)state;
	sched_stream_of(8);
	for (int i = 0; i < 20; i++)
		assert_int_equal(sched_post(8), ENG_TX_BATCH);
	sched_acknowledge_all_but(1);
	burst = sched_leave(BURST_PACKETS);
	assert_int_equal(burst.kind, ENG_BURST_REQUESTS);
	assert_int_equal(burst.packets, 20);
	assert_true(burst.last);
}

/*
 * The number of posts in a burst decides whether later posts are a stream; each burst sent since
 * then halves the number.
 */
static void test_stream_is_forgotten_slowly(void **state)
{
	(void)state;
	for (int bursts = 0; bursts <= 3; bursts++) {
		for (uint32_t more = 0; more < 2; more++) {
			uint32_t posts = (uint32_t)(STREAM + more) << bursts;

			/* At most 128 posts are sent in one burst. */
			if (posts > BURST_PACKETS)
				continue;
			sched_start_again(ENG_RC, MTU);
			for (uint32_t i = 0; i < posts; i++)
				sched_post(8);
			assert_int_equal(sched_leave(BURST_PACKETS).packets, posts);
			sched_acknowledge_all_but(0);
			for (int i = 0; i < bursts; i++) {
				sched_post(8);
				sched_leave(BURST_PACKETS);
				sched_acknowledge_all_but(0);
			}
			assert_int_equal(sched_post(8), more ? ENG_TX_BATCH : ENG_TX_BURST);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCHED_TEST(test_which_posts_are_gathered),
		SCHED_TEST(test_number_ends_batch),
		SCHED_TEST(test_first_signal_ends_batch),
		SCHED_TEST(test_round_sends_all_that_was_gathered),
		SCHED_TEST(test_stream_is_forgotten_slowly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
