/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Decides from the stats of a run when the run is over and with which verdict.  A deadlock is
 * proven, not inferred from a timeout: nothing is in flight, neither endpoint has a deadline, and
 * the work is not complete.
 */
#ifndef UROCE_FLOW_CHECKER_H
#define UROCE_FLOW_CHECKER_H

#include "shared_stats.h"

struct run_checker {
	struct run_stats *stats;
	const struct scenario *sc;
	const struct scheme *scheme;
	uint64_t stall_timeout_ns; /* maximum time without progress */
	uint64_t steady_ns;	   /* minimum time that a deadlock must last; 0 in a simulation */
	uint64_t progress, progress_ns; /* messages sent plus consumed; time of the last change */
	/* nothing is in flight since this time and these loop counts of each side; valid if idle */
	uint64_t idle_since_ns, idle_loops[FLOW_SIDES];
	uint64_t updates_at_done; /* updates sent when done was set */
	bool done, idle;
};

void checker_init(struct run_checker *checker, struct run_stats *stats, const struct scenario *sc,
		  const struct scheme *scheme, uint64_t now);
/* Returns VERDICT_RUNNING until the run is over. */
enum flow_verdict checker_poll(struct run_checker *checker, uint64_t now);
/*
 * Called when both endpoints have written their results.  Changes VERDICT_OK to VERDICT_LOST if a
 * sender's allowance plus the peer's unreported receives differ from the free receives (posted
 * minus sent), if the allowance ever exceeded them, or if an update could not be true.
 */
enum flow_verdict checker_final(const struct run_checker *checker, enum flow_verdict verdict);

#endif
