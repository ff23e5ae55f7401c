/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Checks how the cost of a step grows with the number of objects: 16 times as many objects may
 * take 16 times as long, and not 256 times.  Processor time is compared; the minimum of several
 * tries counts.  An object may cost several times as much where all of them do not fit into a
 * cache, so the bound is far from both: linear steps measured 7 to 27, and a walk over all
 * objects in each step 113 to 384.
 */
#ifndef UROCE_TESTS_GROWTH_H
#define UROCE_TESTS_GROWTH_H

#include <stdio.h>
#include <time.h>

enum {
	GROWTH = 16,
	GROWTH_MOST = 4 * GROWTH, /* the geometric mean of 16 and 256 */
	GROWTH_TRIES = 5,
};

/* Processor time that this thread has used, ns. */
static inline uint64_t used_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

static inline uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* cost() creates count objects and returns the processor time of the steps under test, ns. */
static inline void assert_linear(unsigned int count, uint64_t (*cost)(unsigned int count))
{
	uint64_t few = UINT64_MAX, many = UINT64_MAX;

	for (int i = 0; i < GROWTH_TRIES; i++) {
		few = lesser(few, cost(count));
		many = lesser(many, cost(GROWTH * count));
		if (many < GROWTH_MOST * few)
			return;
	}
	fail_msg("%u objects take %.3f ms, %u take %.3f ms", count, (double)few / 1e6,
		 GROWTH * count, (double)many / 1e6);
}

#endif
