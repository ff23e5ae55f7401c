/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Parts of the connection manager: time codes and repetitions. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cm/cm.h"
#include "cm/timing.h"

#define LONG_TIME (1000000 * CM_MS)

/*
 * Time codes are 4.096 us x 2^n; the ACK timeout is the sum of round trip and ACK delay, rounded up
 * as in the kernel (values from captures of the kernel and from its source).
 */
static void test_codes(void **state)
{
	(void)state;
	assert_true(cm_code_ns(0) == 4096);
	assert_true(cm_code_ns(20) == 4294967296);
	assert_true(cm_code_ns(31) == UINT64_C(4096) << 31);
	assert_true(cm_code_ns(255) == UINT64_C(4096) << 31);
	assert_int_equal(cm_ack_timeout(15, 18), 19);
	assert_int_equal(cm_ack_timeout(15, 16), 17);
	assert_int_equal(cm_ack_timeout(15, 13), 16);
	assert_int_equal(cm_ack_timeout(15, 14), 16);
	assert_int_equal(cm_ack_timeout(15, 20), 21);
	assert_int_equal(cm_ack_timeout(15, 0), 15);
	assert_int_equal(cm_ack_timeout(31, 31), 31);
}

/* Times at which an unanswered request is sent: 0, 50 ms, 250 ms, 1.25 s, then each interval. */
static void test_repetitions(void **state)
{
	uint64_t interval = 2 * cm_code_ns(16) + cm_code_ns(20), at;
	const uint64_t early[] = { 50 * CM_MS, 250 * CM_MS, 1250 * CM_MS };
	struct timing t;

	(void)state;
	cm_timing_set(&t, 20, 16, 15);
	cm_timing_start(&t, LONG_TIME, 1000);
	for (unsigned int i = 0; i < 3; i++) {
		at = cm_timing_next(&t);
		assert_true(at == 1000 + early[i]);
		cm_timing_repeated(&t, at);
	}
	for (unsigned int i = 0; i < 14; i++) {
		assert_true(cm_timing_next(&t) == at + interval);
		at += interval;
		cm_timing_repeated(&t, at);
	}
	/* 70 s are over before 16 intervals of 4.8 s. */
	assert_true(t.give_up_at == 1000 + CM_GIVE_UP_NS);
	assert_true(cm_timing_next(&t) == t.give_up_at);
}

/* Extreme attributes: the time limit is at least 50 ms and at most 70 s. */
static void test_bounds(void **state)
{
	struct timing t;

	(void)state;
	cm_timing_set_response(&t, 31, 15);
	assert_true(t.interval == CM_GIVE_UP_NS && t.limit == CM_GIVE_UP_NS);
	cm_timing_set_response(&t, 0, 0);
	assert_true(t.interval == 50 * CM_MS && t.limit == 50 * CM_MS);
	cm_timing_set(&t, 31, 31, 255);
	assert_true(t.limit == CM_GIVE_UP_NS);
	cm_timing_start(&t, CM_DESTROY_DREQ_NS, 5);
	assert_true(t.give_up_at == 5 + CM_DESTROY_DREQ_NS);
	assert_true(cm_timing_timewait(0) == 50 * CM_MS);
	assert_true(cm_timing_timewait(16) == cm_code_ns(16));
	assert_true(cm_timing_timewait(19) == CM_TIMEWAIT_MAX_NS);
}

/*
 * An MRA of 68 s moves the time limit to at most 70 s from now, only once, and never to an earlier
 * time.
 */
static void test_stretch(void **state)
{
	struct timing t;
	uint64_t end;

	(void)state;
	cm_timing_set(&t, 20, 16, 15);
	cm_timing_start(&t, LONG_TIME, 0);
	cm_timing_extend(&t, 0, 1);
	assert_true(t.give_up_at == CM_GIVE_UP_NS);
	cm_timing_start(&t, LONG_TIME, 0);
	cm_timing_extend(&t, 24, 10000 * CM_MS);
	end = t.give_up_at;
	assert_true(end == 10000 * CM_MS + CM_GIVE_UP_NS);
	assert_true(t.repeat_at == 10000 * CM_MS + t.interval);
	cm_timing_extend(&t, 24, 60000 * CM_MS);
	assert_true(t.give_up_at == end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_codes),
		cmocka_unit_test(test_repetitions),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_stretch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
