/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "stages.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "pair.h"

struct stages *stages_open(void)
{
	struct stages *stages = mmap(NULL, sizeof(*stages), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (stages == MAP_FAILED)
		pair_die("mmap");
	return stages;
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int64_t median(const struct stages *stages, int from, int to)
{
	static int64_t ns[STAGES_MESSAGES - STAGES_WARM_UP];
	size_t n = 0;

	for (size_t i = STAGES_WARM_UP; i < STAGES_MESSAGES; i++)
		ns[n++] = (int64_t)(stages->at[i][to] - stages->at[i][from]);
	qsort(ns, n, sizeof(*ns), compare);
	return ns[n / 2];
}

uint64_t stages_time_ns(void (*call)(void *arg), void *arg)
{
	enum { BATCHES = 10, CALLS = 1000 };
	uint64_t least = UINT64_MAX;

	for (int batch = 0; batch < BATCHES; batch++) {
		uint64_t start = pair_now_ns(), took;

		for (int i = 0; i < CALLS; i++)
			call(arg);
		took = pair_now_ns() - start;
		if (took < least)
			least = took;
	}
	return least / CALLS;
}

static void read_clock(void *arg)
{
	(void)arg;
	pair_now_ns();
}

void stages_report(const struct stages *stages)
{
	printf("{\"post_ns\": %ld, \"way_ns\": %ld, \"take_ns\": %ld, \"empty_ns\": %ld, "
	       "\"clock_ns\": %ld}\n",
	       median(stages, STAGE_POST, STAGE_POSTED), median(stages, STAGE_POST, STAGE_FOUND),
	       median(stages, STAGE_LOOK, STAGE_FOUND), (int64_t)stages->empty_ns,
	       (int64_t)stages_time_ns(read_clock, NULL));
}
