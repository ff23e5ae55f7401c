/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "pacing.h"

#include "interval.h"

enum {
	BURST = 61440,
	/* Six full bursts: a default socket buffer of 208 KB holds 90 packets of 4 KB in bursts. */
	DEPTH = 6 * BURST,
	/* Bytes in a millisecond. */
	RATE_FIRST = 4000000, /* 4 GB/s */
	RATE_MIN = 1000000,
	RATE_MAX = 8000000,

	/* The same on a network, the first one where there are marks. */
	NETWORK_FIRST = 20000,
	NETWORK_MIN = 1000,
	RATE_STEP = 60,
	/* News of marks may be late on a busy host, and then a queue has grown. */
	GROWTH = 32,
	GROWTH_MARKS = 128,
	DEPTH_NS = 1000000,
	NETWORK_BURST_MIN = 2 * 4200,
	/* Cuts and steps up are no closer than this. */
	CUT_NS = 1000000,
	STEP_NS = 1000000,
	STEPS_BACK = 5,
	ALPHA_ONE = 1024,
	LOSS_PART = ALPHA_ONE * 2 / 5,
	ALPHA_WEIGHT = 16,
};

void pacing_start(struct pacing *pacing, uint64_t now)
{
	pacing->filled_at = now;
	pacing->tokens = DEPTH;
	pacing->rate = RATE_FIRST;
	pacing->network = false;
}

static int64_t depth(const struct pacing *pacing)
{
	uint64_t bytes = (uint64_t)pacing->rate * DEPTH_NS / 1000000;

	if (!pacing->network || bytes > DEPTH)
		return DEPTH;
	return bytes < NETWORK_BURST_MIN ? NETWORK_BURST_MIN : (int64_t)bytes;
}

void pacing_start_network(struct pacing *pacing, bool marks, uint64_t now)
{
	pacing_start(pacing, now);
	pacing->network = true;
	pacing->marks = marks;
	pacing->begins = true;
	pacing->hit = false;
	pacing->lost = false;
	pacing->alpha = ALPHA_ONE;
	pacing->steps = 0;
	pacing->stepped_at = now;
	if (marks)
		pacing->rate = NETWORK_FIRST;
	pacing->target = pacing->rate;
	pacing->tokens = depth(pacing);
}

static void cut(struct pacing *pacing, uint64_t now)
{
	uint32_t part;

	pacing->begins = false;
	pacing->target = pacing->rate;
	part = pacing->lost && pacing->alpha < LOSS_PART ? LOSS_PART : pacing->alpha;
	pacing->rate -= (uint32_t)((uint64_t)pacing->rate * part / (2 * ALPHA_ONE));
	if (pacing->rate < NETWORK_MIN)
		pacing->rate = NETWORK_MIN;
	pacing->alpha = (uint16_t)(pacing->alpha + (ALPHA_ONE - pacing->alpha) / ALPHA_WEIGHT);
	pacing->steps = 0;
	pacing->stepped_at = now;
	if (!pacing->lost)
		return;
	/* There may be a long queue, and then the next news of it is far. */
	pacing->target = pacing->rate;
	pacing->steps = STEPS_BACK;
}

static void step_up(struct pacing *pacing)
{
	pacing->alpha = (uint16_t)(pacing->alpha - pacing->alpha / ALPHA_WEIGHT);
	if (pacing->begins)
		pacing->target = 3 * pacing->rate; /* the mean of both is twice the rate */
	else if (pacing->steps < STEPS_BACK)
		pacing->steps++;
	else
		pacing->target +=
			pacing->target / (pacing->marks ? GROWTH_MARKS : GROWTH) + RATE_STEP;
	if (pacing->target > RATE_MAX)
		pacing->target = RATE_MAX;
	pacing->rate = (pacing->rate + pacing->target + 1) / 2;
}

/* Caller has seen that time has passed. */
static void find_rate(struct pacing *pacing, uint64_t now)
{
	if (pacing->hit || pacing->lost) {
		/* What comes sooner is about what was sent before. */
		if (elapsed(pacing->stepped_at, now) >= CUT_NS || pacing->begins)
			cut(pacing, now);
		pacing->hit = false;
		pacing->lost = false;
	}
	/* A pause shows nothing. */
	if (elapsed(pacing->stepped_at, now) >= STEP_NS) {
		step_up(pacing);
		pacing->stepped_at = now;
	}
}

/* Tokens that are enough to go: a full burst, so that system calls carry much, or what is left. */
static int64_t enough(const struct pacing *pacing, uint64_t left)
{
	uint64_t burst = pacing->network ? (uint64_t)depth(pacing) / 2 : BURST;

	if (burst > BURST)
		burst = BURST;
	return (int64_t)(left < burst ? left : burst);
}

bool pacing_open(struct pacing *pacing, uint64_t left, uint64_t now)
{
	uint64_t passed = elapsed(pacing->filled_at, now);

	/* A long pause fills it; more would overflow the product. */
	if (passed > 1000000000)
		passed = 1000000000;
	pacing->tokens += (int64_t)(passed * pacing->rate / 1000000);
	if (pacing->network)
		find_rate(pacing, now);
	if (pacing->tokens > depth(pacing))
		pacing->tokens = depth(pacing);
	/* Time that has been credited is not credited again. */
	if (now > pacing->filled_at)
		pacing->filled_at = now;
	return pacing->tokens >= enough(pacing, left);
}

int64_t pacing_allowance(const struct pacing *pacing)
{
	return pacing->network ? pacing->tokens : INT64_MAX;
}

uint64_t pacing_deadline(const struct pacing *pacing, uint64_t left)
{
	/* Sleeping takes its time too: once awake there should be several bursts to send. */
	int64_t half = depth(pacing) / 2;
	int64_t wanted = left < (uint64_t)half ? (int64_t)left : half;
	int64_t missing = wanted - pacing->tokens;

	if (pacing->tokens >= enough(pacing, left))
		return UINT64_MAX;
	return pacing->filled_at + (uint64_t)missing * 1000000 / pacing->rate + 1;
}

void pacing_spent(struct pacing *pacing, uint32_t bytes)
{
	pacing->tokens -= bytes;
}

void pacing_went_well(struct pacing *pacing)
{
	if (pacing->network)
		return;
	pacing->rate += pacing->rate / 8;
	if (pacing->rate > RATE_MAX)
		pacing->rate = RATE_MAX;
}

void pacing_lost(struct pacing *pacing)
{
	if (pacing->network) {
		pacing->lost = true;
		return;
	}
	pacing->rate /= 2;
	if (pacing->rate < RATE_MIN)
		pacing->rate = RATE_MIN;
}

void pacing_congested(struct pacing *pacing)
{
	pacing->hit = true;
}
