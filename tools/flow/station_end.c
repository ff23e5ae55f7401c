// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Results of a run: percentiles, fairness, and the remaining credits of each connection. */
#include <stdlib.h>

#include "station.h"

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static uint64_t percentile(const struct samples *samples, uint32_t percent)
{
	return samples->count ? samples->ns[(uint64_t)(samples->count - 1) * percent / 100] : 0;
}

/* Jain's index in permille: 1000 if all connections are equal, 1000 / n if one had all. */
static uint32_t fairness(const struct station *st)
{
	double sum = 0, squares = 0;

	for (uint32_t i = 0; i < st->link_count; i++) {
		sum += st->half_consumed[i];
		squares += (double)st->half_consumed[i] * st->half_consumed[i];
	}
	return squares > 0 ? (uint32_t)(1000 * sum * sum / (st->link_count * squares)) : 1000;
}

void station_end(struct station *st)
{
	struct side_result *r = &st->result;

	qsort(st->latency.ns, st->latency.count, sizeof(st->latency.ns[0]), compare);
	qsort(st->free_latency.ns, st->free_latency.count, sizeof(st->free_latency.ns[0]), compare);
	r->p50_ns = percentile(&st->latency, 50);
	r->p99_ns = percentile(&st->latency, 99);
	r->free_p50_ns = percentile(&st->free_latency, 50);
	r->free_p99_ns = percentile(&st->free_latency, 99);
	r->fairness_permille = fairness(st);
	for (uint32_t i = 0; i < st->link_count; i++) {
		const struct flow_link *l = &st->link[i];

		if (st->scheme->allowance)
			r->allowance[i] = st->scheme->allowance(&l->s);
		if (st->scheme->hidden)
			r->hidden[i] = st->scheme->hidden(&l->s);
	}
	st->mine->result = *r;
	if (!st->mine->error)
		station_explain(st, st->mine->what, sizeof(st->mine->what));
}
