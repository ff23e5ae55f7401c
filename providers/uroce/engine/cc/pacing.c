/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "pacing.h"

#include <assert.h>

#include "cc.h"
#include "engine/base/types.h"

enum {
	/* In bytes: a full burst, and the capacity of a default socket buffer. */
	BURST = 15 * WIRE_MAX_MTU,
	DEPTH = CC_DEFAULT_PACKETS * WIRE_MAX_MTU,
	/* In bytes per millisecond: on a host, and on a network. */
	RATE_MIN = 1000000,
	RATE_MAX = 8 * RATE_MIN,
	NETWORK_MIN = 1000,
	/* Minimum of the bytes that may be sent at once on a network; also the first rate with
	 * marks. */
	NETWORK_BURST = CC_MIN_PACKETS * CC_FULL_PACKET,
	/*
	 * Increase for each interval: a constant and a fraction of the rate.  It is larger without
	 * marks: with marks a queue is reported, and must be kept short, before packets are lost.
	 */
	GROWTH = NETWORK_MIN / 4,
	GROWTH_PART = 128,
	UNMARKED_GROWTH = 4,
	INTERVAL_NS = 1000000,
};

void pacing_start(struct pacing *pacing, uint64_t now)
{
	pacing->filled_at = now;
	pacing->tokens = DEPTH;
	pacing->rate = RATE_MAX / 2;
	pacing->phase = PACING_HOST;
}

static int64_t depth(const struct pacing *pacing)
{
	uint64_t bytes = (uint64_t)pacing->rate * INTERVAL_NS / 1000000;

	if (!pacing_is_on_network(pacing) || bytes > DEPTH)
		return DEPTH;
	return bytes < NETWORK_BURST ? NETWORK_BURST : (int64_t)bytes;
}

void pacing_start_network(struct pacing *pacing, bool marks, uint64_t now)
{
	pacing_start(pacing, now);
	pacing->phase = PACING_DOUBLING;
	pacing->is_congested = false;
	pacing->marks = marks;
	pacing->stepped_at = now;
	if (marks)
		pacing->rate = NETWORK_BURST;
	pacing->tokens = depth(pacing);
}

static void cut(struct pacing *pacing)
{
	pacing->rate -= pacing->rate / 5;
	if (pacing->rate < NETWORK_MIN)
		pacing->rate = NETWORK_MIN;
	pacing->phase = PACING_STEADY;
}

static void grow(struct pacing *pacing)
{
	if (pacing->phase == PACING_DOUBLING)
		pacing->rate *= 2;
	else
		pacing->rate += (GROWTH + pacing->rate / GROWTH_PART) *
				(pacing->marks ? 1 : UNMARKED_GROWTH);
	if (pacing->rate > RATE_MAX)
		pacing->rate = RATE_MAX;
}

/*
 * Changes the rate at most once in an interval, as later reports in it concern packets sent before
 * the change.  Only the first congestion of all changes it at once.
 */
static void find_rate(struct pacing *pacing, uint64_t now)
{
	bool is_first = pacing->is_congested && pacing->phase == PACING_DOUBLING;

	if (is_first || elapsed(pacing->stepped_at, now) >= INTERVAL_NS) {
		if (pacing->is_congested)
			cut(pacing);
		else
			grow(pacing);
		pacing->stepped_at = now;
	}
	pacing->is_congested = false;
}

/* Tokens needed to send: those of a full burst, which saves system calls, or of the left bytes. */
static int64_t enough(const struct pacing *pacing, uint64_t left)
{
	uint64_t burst = pacing_is_on_network(pacing) ? (uint64_t)depth(pacing) / 2 : BURST;

	if (burst > BURST)
		burst = BURST;
	return (int64_t)(left < burst ? left : burst);
}

bool pacing_open(struct pacing *pacing, uint64_t left, uint64_t now)
{
	uint64_t passed = elapsed(pacing->filled_at, now);

	/* One second fills the bucket; a longer time could overflow the product. */
	if (passed > 1000000000)
		passed = 1000000000;
	pacing->tokens += (int64_t)(passed * pacing->rate / 1000000);
	if (pacing_is_on_network(pacing))
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
	return pacing_is_on_network(pacing) ? pacing->tokens : INT64_MAX;
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

void pacing_read_done(struct pacing *pacing)
{
	if (pacing_is_on_network(pacing))
		return;
	pacing->rate += pacing->rate / 8;
	if (pacing->rate > RATE_MAX)
		pacing->rate = RATE_MAX;
}

void pacing_lost(struct pacing *pacing)
{
	if (pacing_is_on_network(pacing)) {
		pacing_congested(pacing);
		return;
	}
	pacing->rate /= 2;
	if (pacing->rate < RATE_MIN)
		pacing->rate = RATE_MIN;
}

void pacing_congested(struct pacing *pacing)
{
	pacing->is_congested = true;
}

void pacing_check(const struct pacing *pacing)
{
	uint32_t least = pacing_is_on_network(pacing) ? NETWORK_MIN : RATE_MIN;

	/* 0: it has not started. */
	assert(pacing->rate == 0 || pacing->rate >= least);
	assert(pacing->rate <= RATE_MAX);
	assert(pacing->tokens <= DEPTH);
}
