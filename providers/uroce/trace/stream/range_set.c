/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "range_set.h"

#include <string.h>

void range_set_add(struct range_set *set, uint64_t from, uint64_t to)
{
	if (set->count == RANGE_SET_MAX) {
		set->lost += set->items[0].to - set->items[0].from;
		set->count--;
		memmove(set->items, set->items + 1, set->count * sizeof(set->items[0]));
	}
	set->items[set->count++] = (struct range){ from, to };
}

bool range_set_remove(struct range_set *set, uint64_t position)
{
	for (unsigned int i = 0; i < set->count; i++) {
		struct range *range = &set->items[i];
		uint64_t to = range->to;

		if (position < range->from || position >= to)
			continue;
		range->to = position;
		if (range->from == position) {
			range->from = position + 1;
			range->to = to;
		}
		if (range->from == range->to)
			*range = set->items[--set->count];
		else if (range->to == position && position + 1 < to)
			range_set_add(set, position + 1, to);
		return true;
	}
	return false;
}

uint64_t range_set_first(const struct range_set *set, uint64_t low, uint64_t high)
{
	uint64_t first = high;

	for (unsigned int i = 0; i < set->count; i++) {
		uint64_t from = set->items[i].from > low ? set->items[i].from : low;

		if (from < set->items[i].to && from < first)
			first = from;
	}
	return first;
}

uint64_t range_set_total(const struct range_set *set)
{
	uint64_t total = set->lost;

	for (unsigned int i = 0; i < set->count; i++)
		total += set->items[i].to - set->items[i].from;
	return total;
}
