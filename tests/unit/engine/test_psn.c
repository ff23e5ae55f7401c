/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* 24-bit serial arithmetic, compared with a second derivation in plain 64-bit numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "engine/base/psn.h"

#define NUMBERS (1 << 24)
#define HALF (1 << 23)
#define NEAR 300
#define TRIPLES 2000000

/* The distance by counting: the shorter way around the circle, backwards if both are equal. */
static int64_t counted_distance(uint32_t a, uint32_t b)
{
	int64_t forwards = ((int64_t)a - b + NUMBERS) % NUMBERS;

	return forwards < HALF ? forwards : forwards - NUMBERS;
}

static uint32_t random_psn(void)
{
	return (uint32_t)random() & PSN_MASK;
}

/* All pairs within 300 of the wrap, and of the opposite point, compare by the counted distance. */
static void test_all_pairs_around_the_wrap(void **state)
{
	int64_t i, j;

	(void)state;
	for (i = -NEAR; i <= NEAR; i++) {
		for (j = -NEAR; j <= NEAR; j++) {
			uint32_t a = (uint32_t)((i + NUMBERS) % NUMBERS);
			uint32_t b = (uint32_t)((j + NUMBERS) % NUMBERS);
			uint32_t opposite = (uint32_t)((j + HALF) % NUMBERS);

			assert_int_equal(psn_diff(a, b), counted_distance(a, b));
			assert_int_equal(psn_diff(a, b), i - j);
			assert_int_equal(psn_diff(a, opposite), counted_distance(a, opposite));
			assert_int_equal(psn_diff(opposite, a), counted_distance(opposite, a));
		}
	}
}

/* Every one of the 2^24 distances is right, from both sides of the wrap. */
static void test_every_distance(void **state)
{
	static const uint32_t from[] = { 0, 1, HALF - 1, HALF, HALF + 1, PSN_MASK };
	size_t k;
	uint32_t n;

	(void)state;
	for (k = 0; k < sizeof(from) / sizeof(from[0]); k++) {
		for (n = 0; n < NUMBERS; n++) {
			uint32_t psn = psn_add(from[k], n);
			int32_t expected = n < HALF ? (int32_t)n : (int32_t)n - NUMBERS;

			/* assert_int_equal() for each would take most of a minute. */
			if (psn_diff(psn, from[k]) != expected || psn > PSN_MASK ||
			    psn_sub(psn, n) != from[k])
				fail_msg("from %#x by %#x", from[k], n);
		}
	}
}

/* Adding and subtracting stay within 24 bits and undo each other, for steps of any size. */
static void test_steps_are_undone(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < TRIPLES; i++) {
		uint32_t psn = random_psn();
		uint32_t n = (uint32_t)random() << 1 ^ (uint32_t)random();

		if (psn_sub(psn_add(psn, n), n) != psn || psn_add(psn, n) > PSN_MASK ||
		    psn_sub(psn, n) > PSN_MASK || psn_add(psn, n) != ((uint64_t)psn + n) % NUMBERS)
			fail_msg("psn %#x n %#x", psn, n);
	}
}

/* Comparisons do not depend on where on the circle they happen, and signs agree both ways. */
static void test_random_triples(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < TRIPLES; i++) {
		uint32_t a = random_psn(), b = random_psn(), shift = random_psn();
		int32_t ab = psn_diff(a, b);

		if (ab != counted_distance(a, b) ||
		    ab != psn_diff(psn_add(a, shift), psn_add(b, shift)) ||
		    (ab != -HALF && psn_diff(b, a) != -ab) || (ab == 0) != (a == b) ||
		    psn_add(b, (uint32_t)ab) != a)
			fail_msg("a %#x b %#x shift %#x", a, b, shift);
	}
}

/* psn_in() returns the same as counting the n numbers one by one. */
static void test_window_by_counting(void **state)
{
	static const uint32_t firsts[] = { 0, 1, 17, PSN_MASK, PSN_MASK - 1, PSN_MASK - 17, HALF };
	size_t k;
	uint32_t n, i, j;

	(void)state;
	for (k = 0; k < sizeof(firsts) / sizeof(firsts[0]); k++) {
		for (n = 0; n <= 20; n++) {
			for (i = 0; i < 64; i++) {
				uint32_t psn = psn_add(firsts[k], i - 24);
				bool counted = false;

				for (j = 0; j < n; j++)
					counted |= ((firsts[k] + j) % NUMBERS) == psn;
				assert_int_equal(psn_in(psn, firsts[k], n), counted);
			}
		}
	}
}

/* A window of any size has its two ends inside and their neighbours outside. */
static void test_window_ends(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < TRIPLES; i++) {
		uint32_t first = random_psn();
		uint32_t n = 1 + (uint32_t)random() % (NUMBERS - 1);

		if (!psn_in(first, first, n) || !psn_in(psn_add(first, n - 1), first, n) ||
		    psn_in(psn_add(first, n), first, n) || psn_in(psn_sub(first, 1), first, n))
			fail_msg("first %#x n %#x", first, n);
		assert_false(psn_in(first, first, 0));
	}
}

/* In three rounds of all numbers an old PSN never lies ahead, and it is unchanged while near. */
static void test_old_numbers_follow(void **state)
{
	const uint32_t step = 977;
	uint32_t newest = NUMBERS - 500, old = newest;
	uint64_t counted = 0;

	(void)state;
	while (counted < 3 * (uint64_t)NUMBERS) {
		newest = psn_add(newest, step);
		counted += step;
		psn_follow(&old, newest);
		if (counted <= HALF / 2 - 1)
			assert_int_equal(old, NUMBERS - 500);
		assert_true(counted_distance(newest, old) >= 0);
		assert_true(counted_distance(newest, old) <= HALF / 2);
	}
	psn_follow(&newest, old);
	assert_true(counted_distance(newest, old) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_pairs_around_the_wrap),
		cmocka_unit_test(test_every_distance),
		cmocka_unit_test(test_steps_are_undone),
		cmocka_unit_test(test_random_triples),
		cmocka_unit_test(test_window_by_counting),
		cmocka_unit_test(test_window_ends),
		cmocka_unit_test(test_old_numbers_follow),
	};

	srandom(20);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
