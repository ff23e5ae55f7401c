/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Endpoints on two hosts: each sends the other its side of the stats over the out-of-band stream,
 * every few milliseconds, and its results at the end.
 */
#ifndef UROCE_FLOW_REPORT_PEER_H
#define UROCE_FLOW_REPORT_PEER_H

#include "shared_stats.h"

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
