/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Runs one endpoint over a device: the loop that drives an endpoint. */
#ifndef UROCE_FLOW_RUNNER_H
#define UROCE_FLOW_RUNNER_H

#include "checker.h"
#include "oob.h"
#include "shared_stats.h"

struct runner_options {
	struct device_options device;
	struct run_plan plan;
	uint32_t side;
	struct oob_sock sock; /* out-of-band connection to the peer */
	struct run_stats *stats;
	/* Called at the end of the run, before the device is closed; may be NULL. */
	void (*finished)(void *argument);
	void *argument;
};

/*
 * Runs until stats->stop is set: by run_pair(), or with plan.two_hosts when the checker, which side
 * 0 runs, has a verdict.  Returns 0, or -1 with the reason in the stats of its side.  With
 * plan.two_hosts, the other side of the stats is filled from the peer's reports, and both sides
 * store the checker's verdict in *verdict.
 */
int runner_run(struct runner_options *options, enum flow_verdict *verdict);

/* ---- report_peer.c ---- */

/*
 * Endpoints on two hosts: each sends the other its side of the stats over the out-of-band stream,
 * every few milliseconds, and its results at the end.
 */

struct peer_reports {
	uint64_t next_ns;
	bool peer_stopped;
};

/*
 * If a report is due: sends it, reads those received, and sets stats->stop if the peer has stopped.
 * Returns -1 if the peer has exited.
 */
int peer_reports_exchange(struct peer_reports *reports, struct oob_sock sock,
			  struct run_stats *stats, uint32_t side, uint64_t now);
/* Exchanges the results at the end; side 1 gets the verdict of side 0.  Returns 0 or -1. */
int peer_reports_finish(struct peer_reports *reports, struct oob_sock sock, struct run_stats *stats,
			uint32_t side, enum flow_verdict *verdict);

#endif
