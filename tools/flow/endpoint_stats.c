// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Results of a run: percentiles, fairness, and the remaining credits of each connection. */
#include <stdlib.h>

#include "endpoint.h"

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static uint64_t get_percentile(const struct samples *samples, uint32_t percent)
{
	return samples->count ? samples->ns[(uint64_t)(samples->count - 1) * percent / 100] : 0;
}

/* Jain's index in permille: 1000 if all connections are equal, 1000 / n if one had all. */
static uint32_t jain_index(const struct flow_endpoint *st)
{
	double sum = 0, squares = 0;

	for (uint32_t i = 0; i < st->link_count; i++) {
		sum += st->half_consumed[i];
		squares += (double)st->half_consumed[i] * st->half_consumed[i];
	}
	return squares > 0 ? (uint32_t)(1000 * sum * sum / (st->link_count * squares)) : 1000;
}

void endpoint_finish(struct flow_endpoint *st)
{
	struct endpoint_result *r = &st->result;

	qsort(st->latency.ns, st->latency.count, sizeof(st->latency.ns[0]), compare_u32);
	qsort(st->free_latency.ns, st->free_latency.count, sizeof(st->free_latency.ns[0]),
	      compare_u32);
	r->p50_ns = get_percentile(&st->latency, 50);
	r->p99_ns = get_percentile(&st->latency, 99);
	r->free_p50_ns = get_percentile(&st->free_latency, 50);
	r->free_p99_ns = get_percentile(&st->free_latency, 99);
	r->fairness_permille = jain_index(st);
	for (uint32_t i = 0; i < st->link_count; i++) {
		const struct flow_link *l = &st->link[i];

		if (st->scheme->allowance)
			r->allowance[i] = st->scheme->allowance(&l->s);
		if (st->scheme->unreported)
			r->unreported[i] = st->scheme->unreported(&l->s);
	}
	st->mine->result = *r;
	if (!st->mine->error)
		endpoint_explain(st, st->mine->what, sizeof(st->mine->what));
}
