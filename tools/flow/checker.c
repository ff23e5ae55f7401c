// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <stddef.h>
#include <string.h>

#include "checker.h"
#include "endpoint.h"

enum {
	WC_RNR_RETRY_EXCEEDED = 13, /* IBV_WC_RNR_RETRY_EXC_ERR */
	/* more updates per connection after all work is done are a storm */
	STORM_UPDATES = 200,
	LOOPS_TO_SETTLE = 3, /* loops in which an endpoint must notice an arrived message */
};

void checker_init(struct run_checker *checker, struct run_stats *stats, const struct scenario *sc,
		  const struct scheme *scheme, uint64_t now)
{
	memset(checker, 0, sizeof(*checker));
	checker->stats = stats;
	checker->sc = sc;
	checker->scheme = scheme;
	checker->stall_timeout_ns = UINT64_C(20000000000);
	checker->steady_ns = UINT64_C(100000000);
	checker->progress_ns = now;
}

static enum flow_verdict find_fault(const struct run_checker *checker)
{
	bool promised = !(checker->scheme->flags & SCHEME_RNR_IS_PART) && !checker->sc->unreliable;

	for (unsigned int side = 0; side < FLOW_SIDES; side++) {
		struct endpoint_stats *s = &checker->stats->side[side];

		if (promised && stats_get(&s->overruns))
			return VERDICT_OVERRUN;
		if (s->error)
			return s->error == WC_RNR_RETRY_EXCEEDED ? VERDICT_OVERRUN : VERDICT_ERROR;
	}
	return VERDICT_RUNNING;
}

/*
 * Returns true if both endpoints are idle and no message is in flight; over UC, where messages may
 * be lost, only the former is checked.
 */
static bool nothing_in_flight(const struct run_checker *checker)
{
	for (unsigned int side = 0; side < FLOW_SIDES; side++) {
		struct endpoint_stats *s = &checker->stats->side[side];
		struct endpoint_stats *peer = &checker->stats->side[!side];

		if (!s->idle)
			return false;
		if (!checker->sc->unreliable &&
		    stats_get(&s->sent_all) != stats_get(&peer->arrived))
			return false;
	}
	return true;
}

/* Returns true if nothing has moved while both endpoints have made LOOPS_TO_SETTLE loops. */
static bool has_settled(struct run_checker *checker, uint64_t now)
{
	bool settled = true;

	if (!nothing_in_flight(checker)) {
		checker->idle = false;
		return false;
	}
	for (unsigned int side = 0; side < FLOW_SIDES; side++) {
		uint64_t loops = stats_get(&checker->stats->side[side].loops);

		if (!checker->idle)
			checker->idle_loops[side] = loops;
		if (loops - checker->idle_loops[side] < LOOPS_TO_SETTLE)
			settled = false;
	}
	if (!checker->idle)
		checker->idle_since_ns = now;
	checker->idle = true;
	return settled;
}

static uint64_t sum_stats(const struct run_checker *checker, size_t offset)
{
	uint64_t all = 0;

	for (unsigned int side = 0; side < FLOW_SIDES; side++)
		all += stats_get(
			(_Atomic uint64_t *)((char *)&checker->stats->side[side] + offset));
	return all;
}

enum flow_verdict checker_poll(struct run_checker *checker, uint64_t now)
{
	struct endpoint_stats *side = checker->stats->side;
	enum flow_verdict fault = find_fault(checker);
	uint64_t controls, progress;

	if (fault != VERDICT_RUNNING)
		return fault;
	controls = sum_stats(checker, offsetof(struct endpoint_stats, control_sent));
	progress = sum_stats(checker, offsetof(struct endpoint_stats, data_sent)) +
		   sum_stats(checker, offsetof(struct endpoint_stats, consumed));
	if (progress != checker->progress) {
		checker->progress = progress;
		checker->progress_ns = now;
		checker->idle = false;
	}
	if (side[0].done && side[1].done) {
		if (!checker->done)
			checker->updates_at_done = controls;
		checker->done = true;
		if (controls - checker->updates_at_done > STORM_UPDATES * checker->sc->links)
			return VERDICT_STORM;
		if (has_settled(checker, now))
			return VERDICT_OK;
	} else if (has_settled(checker, now) &&
		   now - checker->idle_since_ns >= checker->steady_ns) {
		return VERDICT_STUCK;
	}
	return now - checker->progress_ns > checker->stall_timeout_ns ? VERDICT_STALLED
								      : VERDICT_RUNNING;
}

enum flow_verdict checker_final(const struct run_checker *checker, enum flow_verdict verdict)
{
	const struct scheme *scheme = checker->scheme;
	struct endpoint_stats *side = checker->stats->side;

	if (verdict != VERDICT_OK || !scheme->allowance || !scheme->unreported)
		return verdict;
	for (unsigned int from = 0; from < FLOW_SIDES; from++)
		if (stats_get(&side[from].excess) || stats_get(&side[from].bogus_updates))
			return VERDICT_LOST;
	for (unsigned int from = 0; from < FLOW_SIDES; from++) {
		uint32_t extra = scheme_receives(scheme, checker->sc->depth) - checker->sc->depth;
		int64_t known = 0, there = 0;

		for (uint32_t i = 0; i < checker->sc->links; i++) {
			known += side[from].result.allowance[i] + side[!from].result.unreported[i];
			known += extra;
			there += (int64_t)stats_get(&side[!from].posted[i]);
			there -= (int64_t)stats_get(&side[from].sent[i]);
		}
		if (known != there)
			return VERDICT_LOST;
	}
	return verdict;
}
