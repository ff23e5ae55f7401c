// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <stddef.h>
#include <string.h>

#include "judge.h"
#include "station.h"

enum {
	WC_RNR_RETRY_EXCEEDED = 13, /* IBV_WC_RNR_RETRY_EXC_ERR */
	STORM_UPDATES = 200,	    /* updates per connection after all work is done */
	LOOPS_TO_SETTLE = 3,	    /* loops in which an endpoint must notice an arrived message */
};

void judge_begin(struct judge *judge, struct ledger *ledger, const struct scenario *sc,
		 const struct scheme *scheme, uint64_t now)
{
	memset(judge, 0, sizeof(*judge));
	judge->ledger = ledger;
	judge->sc = sc;
	judge->scheme = scheme;
	judge->stall_timeout_ns = UINT64_C(20000000000);
	judge->steady_ns = UINT64_C(100000000);
	judge->progress_ns = now;
}

static enum flow_verdict find_fault(const struct judge *judge)
{
	bool promised = !(judge->scheme->flags & SCHEME_RNR_IS_PART) && !judge->sc->unreliable;

	for (unsigned int side = 0; side < FLOW_SIDES; side++) {
		struct side_ledger *s = &judge->ledger->side[side];

		if (promised && stats_get(&s->overruns))
			return VERDICT_OVERRUN;
		if (s->error)
			return s->error == WC_RNR_RETRY_EXCEEDED ? VERDICT_OVERRUN : VERDICT_ERROR;
	}
	return VERDICT_RUNNING;
}

/* Returns true if both endpoints are idle and no message is in flight. */
static bool nothing_in_flight(const struct judge *judge)
{
	for (unsigned int side = 0; side < FLOW_SIDES; side++) {
		struct side_ledger *s = &judge->ledger->side[side];
		struct side_ledger *peer = &judge->ledger->side[!side];

		if (!s->idle)
			return false;
		if (!judge->sc->unreliable && stats_get(&s->sent_all) != stats_get(&peer->arrived))
			return false;
	}
	return true;
}

/* Returns true if nothing has moved while both endpoints have made LOOPS_TO_SETTLE loops. */
static bool has_settled(struct judge *judge, uint64_t now)
{
	bool settled = true;

	if (!nothing_in_flight(judge)) {
		judge->idle = false;
		return false;
	}
	for (unsigned int side = 0; side < FLOW_SIDES; side++) {
		uint64_t loops = stats_get(&judge->ledger->side[side].loops);

		if (!judge->idle)
			judge->idle_loops[side] = loops;
		if (loops - judge->idle_loops[side] < LOOPS_TO_SETTLE)
			settled = false;
	}
	if (!judge->idle)
		judge->idle_since_ns = now;
	judge->idle = true;
	return settled;
}

static uint64_t sum_stats(const struct judge *judge, size_t offset)
{
	uint64_t all = 0;

	for (unsigned int side = 0; side < FLOW_SIDES; side++)
		all += stats_get((_Atomic uint64_t *)((char *)&judge->ledger->side[side] + offset));
	return all;
}

enum flow_verdict judge_look(struct judge *judge, uint64_t now)
{
	struct side_ledger *side = judge->ledger->side;
	enum flow_verdict fault = find_fault(judge);
	uint64_t controls, progress;

	if (fault != VERDICT_RUNNING)
		return fault;
	controls = sum_stats(judge, offsetof(struct side_ledger, control_sent));
	progress = sum_stats(judge, offsetof(struct side_ledger, data_sent)) +
		   sum_stats(judge, offsetof(struct side_ledger, consumed));
	if (progress != judge->progress) {
		judge->progress = progress;
		judge->progress_ns = now;
		judge->idle = false;
	}
	if (side[0].done && side[1].done) {
		if (!judge->done)
			judge->updates_at_done = controls;
		judge->done = true;
		if (controls - judge->updates_at_done > STORM_UPDATES * judge->sc->links)
			return VERDICT_STORM;
		if (has_settled(judge, now))
			return VERDICT_OK;
	} else if (has_settled(judge, now) && now - judge->idle_since_ns >= judge->steady_ns) {
		return VERDICT_STUCK;
	}
	return now - judge->progress_ns > judge->stall_timeout_ns ? VERDICT_STALLED
								  : VERDICT_RUNNING;
}

enum flow_verdict judge_balance(const struct judge *judge, enum flow_verdict verdict)
{
	const struct scheme *scheme = judge->scheme;
	struct side_ledger *side = judge->ledger->side;

	if (verdict != VERDICT_OK || !scheme->allowance || !scheme->unreported)
		return verdict;
	for (unsigned int from = 0; from < FLOW_SIDES; from++)
		if (stats_get(&side[from].excess) || stats_get(&side[from].bogus_updates))
			return VERDICT_LOST;
	for (unsigned int from = 0; from < FLOW_SIDES; from++) {
		uint32_t extra = scheme_receives(scheme, judge->sc->depth) - judge->sc->depth;
		int64_t known = 0, there = 0;

		for (uint32_t i = 0; i < judge->sc->links; i++) {
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
