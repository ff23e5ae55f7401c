/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Positions that were passed over and may still come: the packets that are missing.  There is room
 * for some spans; when it is full, the oldest one is given up as lost for good.
 */
#ifndef UROCE_TRACE_SPANS_H
#define UROCE_TRACE_SPANS_H

#include <stdbool.h>
#include <stdint.h>

#define SPANS_MAX 256

struct span {
	uint64_t from, to; /* to is the first position behind */
};

struct spans {
	struct span items[SPANS_MAX]; /* in no order */
	unsigned int count;
	uint64_t lost; /* positions given up */
};

void spans_add(struct spans *spans, uint64_t from, uint64_t to);
/* Takes a position out; false when it is in no span. */
bool spans_take(struct spans *spans, uint64_t position);
/* The lowest position from low to below high that is in a span; high when none is. */
uint64_t spans_first(const struct spans *spans, uint64_t low, uint64_t high);
/* How many positions are missing, with those given up. */
uint64_t spans_total(const struct spans *spans);

#endif
