/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Looks at the ledger of a run and says when it is over, and how.  A deadlock is proven, not
 * guessed: nothing is on its way, neither end waits for a time, and not all is done.
 */
#ifndef UROCE_FLOW_JUDGE_H
#define UROCE_FLOW_JUDGE_H

#include "ledger.h"

struct judge {
	struct ledger *ledger;
	const struct scenario *sc;
	const struct scheme *scheme;
	uint64_t patience_ns; /* without progress */
	uint64_t steady_ns;   /* that what cannot change has to stand, 0 in a simulation */
	uint64_t progress, progress_ns;
	uint64_t still_ns, still_loops[FLOW_SIDES]; /* since when nothing is on its way */
	uint64_t control_at_done;
	bool done, still;
};

void judge_begin(struct judge *judge, struct ledger *ledger, const struct scenario *sc,
		 const struct scheme *scheme, uint64_t now);
/* VERDICT_RUNNING until the run is over. */
enum flow_verdict judge_look(struct judge *judge, uint64_t now);
/*
 * When both ends have written their results: a verdict that was VERDICT_OK becomes VERDICT_LOST if
 * what a sender may still send, and what it was not told, is not what its peer has posted, or if
 * it has ever believed in more than there was.
 */
enum flow_verdict judge_balance(const struct judge *judge, enum flow_verdict verdict);

#endif
