/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Runs one endpoint over a device: the loop that drives a station. */
#ifndef UROCE_FLOW_END_H
#define UROCE_FLOW_END_H

#include "judge.h"
#include "rendezvous.h"

struct runner_options {
	struct device_options device;
	struct run_plan plan;
	uint32_t side;
	struct stream stream; /* out-of-band connection to the peer */
	struct ledger *ledger;
	/* Called at the end of the run, before the device is closed; may be NULL. */
	void (*finished)(void *argument);
	void *argument;
};

/*
 * Runs until the judge sets ledger->stop.  Returns 0, or -1 with the reason in the ledger of its
 * side.  With plan.two_hosts, the other side of the ledger is filled from the peer's reports, side
 * 0 runs the judge, and both store its verdict in *verdict.
 */
int runner_run(struct runner_options *options, enum flow_verdict *verdict);

#endif
