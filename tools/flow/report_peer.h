/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Ends on two hosts: each tells the other over the rendezvous' socket, every few milliseconds, what
 * would be in the ledger that they cannot share, and its results at the end.
 */
#ifndef UROCE_FLOW_REPORT_PEER_H
#define UROCE_FLOW_REPORT_PEER_H

#include "ledger.h"

struct peer_reports {
	uint64_t next_ns;
	bool peer_stopped;
};

/* Tell if it is time, and hear what has come.  -1: the peer has gone. */
int peer_reports_move(struct peer_reports *reports, struct stream stream, struct ledger *ledger,
		      uint32_t side, uint64_t now);
/* When it is over: results and the verdict of side 0 go over. */
int peer_reports_finish(struct peer_reports *reports, struct stream stream, struct ledger *ledger,
			uint32_t side, enum flow_verdict *verdict);

#endif
