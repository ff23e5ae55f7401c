/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Throughput of flows through a bottleneck, and its queue: measured while they run, and judged at
 * the end (oracle_flows.c).  Measuring starts some time after the last flow has joined, and ends
 * when the first one has nothing new to send.
 */
#ifndef UROCE_SIM_FLOWS_H
#define UROCE_SIM_FLOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/plan/plan.h"

struct world;

/* Number of bytes acknowledged at a time. */
struct flow_sample {
	uint64_t at;
	uint64_t bytes[PLAN_MAX_CONNECTIONS];
};

struct flow_figures {
	uint64_t ns;	  /* measured for so long */
	double jain;	  /* index of fairness: 1 when all get the same, 1/n when one gets all */
	double line;	  /* payload of all that was acknowledged, over what the line could carry */
	double least;	  /* what a flow got in the worst slot, over its share of the line */
	double repeat;	  /* packets of data sent again, for each that was sent first */
	uint64_t packets; /* ... which were so many, of all flows */
	uint64_t queue_p50, queue_p95, marks, drops; /* while measured */
	uint64_t timeouts;
};

struct flows {
	struct flow_sample *samples;
	uint32_t count, room;
	uint64_t next_at, forge_at;
	uint32_t from, until; /* samples between which is measured */
	bool measures;
	struct flow_figures figures;
};

/* Round trip of the longest path with a full queue: up to the mark, or to the tail. */
uint64_t flows_round_trip_ns(const struct plan *plan);
/* Time after the last join until the flows should have found their shares. */
uint64_t flows_settle_ns(const struct plan *plan);
/* A slot in which no flow may starve. */
uint64_t flows_slot_ns(const struct plan *plan);

void flows_start(struct world *world);
/* When the next forged CNP comes, or ENG_NEVER. */
uint64_t flows_next_at(const struct world *world);
/* The world has made a step. */
void flows_step(struct world *world);
/* Ends the run: prints figures and the oracle's verdict. */
void flows_finish(struct world *world);
void flows_free(struct flows *flows);
void flows_print(const struct world *world);
/* Prints the throughput of each flow in slots of 20 ms. */
void flows_print_shares(const struct world *world);

/* oracle_flows.c */
void oracle_flows(struct world *world);

#endif
