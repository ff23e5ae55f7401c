/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A set of missing positions (see stream.h), as ranges.  It has room for a fixed number of ranges;
 * when it is full one of them, usually the oldest, is removed and counts as lost.
 */
#ifndef UROCE_TRACE_SPANS_H
#define UROCE_TRACE_SPANS_H

#include <stdbool.h>
#include <stdint.h>

#define SPANS_MAX 256

struct span {
	uint64_t from, to; /* half-open: from to to - 1 */
};

struct spans {
	struct span items[SPANS_MAX]; /* unordered */
	unsigned int count;
	uint64_t lost; /* number of positions in removed ranges */
};

void spans_add(struct spans *spans, uint64_t from, uint64_t to);
/* Removes a position; returns false if it is not in the set. */
bool spans_take(struct spans *spans, uint64_t position);
/* Returns the lowest position in the set from low to below high; high if there is none. */
uint64_t spans_first(const struct spans *spans, uint64_t low, uint64_t high);
/* Returns the number of positions, including those that were lost. */
uint64_t spans_total(const struct spans *spans);

#endif
