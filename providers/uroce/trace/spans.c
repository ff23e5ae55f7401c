/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "spans.h"

#include <string.h>

void spans_add(struct spans *spans, uint64_t from, uint64_t to)
{
	if (spans->count == SPANS_MAX) {
		spans->lost += spans->items[0].to - spans->items[0].from;
		spans->count--;
		memmove(spans->items, spans->items + 1, spans->count * sizeof(spans->items[0]));
	}
	spans->items[spans->count++] = (struct span){ from, to };
}

bool spans_take(struct spans *spans, uint64_t position)
{
	for (unsigned int i = 0; i < spans->count; i++) {
		struct span *span = &spans->items[i];
		uint64_t to = span->to;

		if (position < span->from || position >= to)
			continue;
		span->to = position;
		if (span->from == position) {
			span->from = position + 1;
			span->to = to;
		}
		if (span->from == span->to)
			*span = spans->items[--spans->count];
		else if (span->to == position && position + 1 < to)
			spans_add(spans, position + 1, to);
		return true;
	}
	return false;
}

uint64_t spans_first(const struct spans *spans, uint64_t low, uint64_t high)
{
	uint64_t first = high;

	for (unsigned int i = 0; i < spans->count; i++) {
		uint64_t from = spans->items[i].from > low ? spans->items[i].from : low;

		if (from < spans->items[i].to && from < first)
			first = from;
	}
	return first;
}

uint64_t spans_total(const struct spans *spans)
{
	uint64_t total = spans->lost;

	for (unsigned int i = 0; i < spans->count; i++)
		total += spans->items[i].to - spans->items[i].from;
	return total;
}
