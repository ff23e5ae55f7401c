/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Schedule by which the broker sends the last messages of a client
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "broker/last_messages.h"

#define MS UINT64_C(1000000)
enum { ROUNDS = 4, START = 1000 };

static struct last_messages last;
static uint64_t now;

static void begin(void)
{
	now = START;
	last_messages_start(&last, now);
}

/* Advances the time to the next step, which it returns. */
static enum last_messages_step wait_for_step(void)
{
	if (last_messages_next_step(&last, now) == LAST_MESSAGES_WAIT)
		now = last.due;
	return last_messages_next_step(&last, now);
}

/* Sends all chunks of a round, of which only the first has messages. */
static void send_round(uint32_t messages)
{
	for (uint32_t at = 0; at < LAST_MESSAGES_ENTRIES; at += LAST_MESSAGES_CHUNK) {
		assert_int_equal(wait_for_step(), LAST_MESSAGES_SEND);
		assert_int_equal(last.position, at);
		last_messages_chunk_sent(&last, at ? 0 : messages, now);
	}
}

static void test_rounds(void **state)
{
	(void)state;
	begin();
	assert_int_equal(last_messages_next_step(&last, now), LAST_MESSAGES_WAIT);
	assert_true(last_messages_delay_requests(&last));
	assert_int_equal(wait_for_step(), LAST_MESSAGES_CHECK_LOCK);
	last_messages_owner_ended(&last);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		assert_int_equal(last_messages_delay_requests(&last), round == 0);
		send_round(1);
	}
	assert_int_equal(last_messages_next_step(&last, now), LAST_MESSAGES_DONE);
	assert_true(now >= START + 1300 * MS && now < START + 1310 * MS);
}

/* The client has sent all messages itself. */
static void test_nothing(void **state)
{
	(void)state;
	begin();
	assert_int_equal(wait_for_step(), LAST_MESSAGES_CHECK_LOCK);
	last_messages_owner_ended(&last);
	send_round(0);
	assert_int_equal(last_messages_next_step(&last, now), LAST_MESSAGES_DONE);
	assert_false(last_messages_delay_requests(&last));
}

/* A client that still runs for a long time: nothing is sent for it before it ends. */
static void test_alive(void **state)
{
	(void)state;
	begin();
	for (unsigned int looks = 0; looks < 1000; looks++) {
		assert_int_equal(wait_for_step(), LAST_MESSAGES_CHECK_LOCK);
		last_messages_owner_runs(&last, now);
		/* Requests for its ports wait for a limited time only. */
		assert_int_equal(last_messages_delay_requests(&last), now < START + 980 * MS);
	}
	assert_true(now > START + 900 * 1000 * MS);
	assert_int_equal(wait_for_step(), LAST_MESSAGES_CHECK_LOCK);
	last_messages_owner_ended(&last);
	send_round(1);
	send_round(0);
	assert_int_equal(last_messages_next_step(&last, now), LAST_MESSAGES_DONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rounds),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_alive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
