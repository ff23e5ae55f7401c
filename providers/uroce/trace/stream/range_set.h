/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A set of missing positions (see stream.h), as ranges.  It has room for a fixed number of ranges;
 * when it is full one of them, usually the oldest, is removed and counts as lost.
 */
#ifndef UROCE_TRACE_STREAM_RANGE_SET_H
#define UROCE_TRACE_STREAM_RANGE_SET_H

#include <stdbool.h>
#include <stdint.h>

#define RANGE_SET_MAX 256

struct range {
	uint64_t from, to; /* half-open: from to to - 1 */
};

struct range_set {
	struct range items[RANGE_SET_MAX]; /* unordered */
	unsigned int count;
	uint64_t lost; /* number of positions in removed ranges */
};

void range_set_add(struct range_set *set, uint64_t from, uint64_t to);
/* Removes a position; returns false if it is not in the set. */
bool range_set_remove(struct range_set *set, uint64_t position);
/* Returns the lowest position in the set from low to below high; high if there is none. */
uint64_t range_set_first(const struct range_set *set, uint64_t low, uint64_t high);
/* Returns the number of positions, including those that were lost. */
uint64_t range_set_total(const struct range_set *set);

#endif
