/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "pacing.h"

enum {
	RUN = 61440,
	/* Six full runs: a default socket buffer of 208 KB holds 90 packets of 4 KB in runs. */
	BURST = 6 * RUN,
	RATE_FIRST = 4000, /* 4 GB/s */
	RATE_MIN = 1000,
	RATE_MAX = 8000,
};

void pacing_start(struct pacing *pacing, uint64_t now)
{
	pacing->filled_at = now;
	pacing->tokens = BURST;
	pacing->rate = RATE_FIRST;
}

/* Tokens that are enough to go: a full run, so that system calls carry much, or what is left. */
static int64_t enough(uint64_t left)
{
	return left < RUN ? (int64_t)left : RUN;
}

bool pacing_open(struct pacing *pacing, uint64_t left, uint64_t now)
{
	uint64_t passed = now > pacing->filled_at ? now - pacing->filled_at : 0;

	/* A long pause fills it; more would overflow the product. */
	if (passed > 1000000000)
		passed = 1000000000;
	pacing->tokens += (int64_t)(passed * pacing->rate / 1000);
	if (pacing->tokens > BURST)
		pacing->tokens = BURST;
	pacing->filled_at = now;
	return pacing->tokens >= enough(left);
}

uint64_t pacing_deadline(const struct pacing *pacing, uint64_t left)
{
	/* Sleeping takes its time too: once awake there should be several runs to send. */
	int64_t wanted = left < BURST / 2 ? (int64_t)left : BURST / 2;
	int64_t missing = wanted - pacing->tokens;

	if (pacing->tokens >= enough(left))
		return UINT64_MAX;
	return pacing->filled_at + (uint64_t)missing * 1000 / pacing->rate + 1;
}

void pacing_spent(struct pacing *pacing, uint32_t bytes)
{
	pacing->tokens -= bytes;
}

void pacing_went_well(struct pacing *pacing)
{
	pacing->rate += pacing->rate / 8;
	if (pacing->rate > RATE_MAX)
		pacing->rate = RATE_MAX;
}

void pacing_lost(struct pacing *pacing)
{
	pacing->rate /= 2;
	if (pacing->rate < RATE_MIN)
		pacing->rate = RATE_MIN;
}
