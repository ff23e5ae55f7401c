/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* One end of a run over a device: the loop that drives a station. */
#ifndef UROCE_FLOW_END_H
#define UROCE_FLOW_END_H

#include "judge.h"
#include "rendezvous.h"

struct end_options {
	struct device_options device;
	struct run_plan plan;
	uint32_t side;
	struct stream stream; /* to the other end */
	struct ledger *ledger;
	/* Called when the run is over and the device still open; may be NULL. */
	void (*finished)(void *argument);
	void *argument;
};

/*
 * Runs until ledger->stop, which the judge sets.  Returns 0, or -1 with the reason in the ledger of
 * its side.  With plan.apart the other side of the ledger is filled by what the peer reports, side
 * 0 is the judge as well, and *verdict becomes its verdict.
 */
int end_run(struct end_options *options, enum flow_verdict *verdict);

#endif
