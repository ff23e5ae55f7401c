/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Two endpoints of the flow-control lab and a wire between them, in virtual time.  The wire keeps
 * the order of each connection, takes a seeded random time for each message, and does what RC does
 * when no receive is posted: the message, and all after it, wait for the RNR timer.
 */
#ifndef UROCE_TESTS_FLOW_WORLD_H
#define UROCE_TESTS_FLOW_WORLD_H

#include "checker.h"
#include "endpoint.h"

struct world_result {
	enum flow_verdict verdict;
	uint64_t ns;	   /* virtual time */
	uint64_t controls; /* updates of both sides */
	uint64_t data;	   /* messages of the application */
	uint64_t rnr_naks; /* messages that found no receive */
	uint64_t overruns;
	char what[FLOW_SIDES][STATS_ERROR_TEXT];
};

void world_run(const struct scenario *sc, const struct scheme *scheme, uint64_t seed,
	       struct world_result *result);

#endif
