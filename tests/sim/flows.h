/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Throughput of flows through a bottleneck, and the length of its queue: measured while the flows
 * run, and checked at the end (oracle_flows.c).  Measuring starts some time after the last flow has
 * joined, and ends when the first flow has nothing new to send.
 */
#ifndef UROCE_SIM_FLOWS_H
#define UROCE_SIM_FLOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/plan/plan.h"

struct world;

/* Number of bytes of each flow that have been acknowledged up to a time. */
struct flow_sample {
	uint64_t at;
	uint64_t bytes[PLAN_MAX_CONNECTIONS];
};

struct flow_figures {
	uint64_t ns;	  /* duration of the measurement */
	double jain;	  /* Jain's fairness index: 1 if all get the same, 1/n if one gets all */
	double line;	  /* acknowledged payload of all flows / capacity of the bottleneck */
	double least;	  /* lowest throughput of a flow in a slot / its share of the capacity */
	double repeat;	  /* retransmitted data packets / packets sent for the first time */
	uint64_t packets; /* number of packets sent for the first time, of all flows */
	uint64_t queue_p50, queue_p95, marks, drops; /* during the measurement */
	uint64_t timeouts;
};

struct flows {
	struct flow_sample *samples;
	uint32_t count, room;
	uint64_t next_at, forge_at;
	uint32_t from, until; /* first and last sample of the measurement */
	bool measures;
	struct flow_figures figures;
};

/*
 * Round-trip time of the longest path while the queue holds mark_bytes or, without marks, is full.
 */
uint64_t flows_round_trip_ns(const struct plan *plan);
/* Time after the last join until the flows should have found their shares. */
uint64_t flows_settle_ns(const struct plan *plan);
/* Length of the slots, in none of which a flow may starve. */
uint64_t flows_slot_ns(const struct plan *plan);

void flows_start(struct world *world);
/* Time of the next forged CNP, or ENG_NEVER. */
uint64_t flows_next_at(const struct world *world);
/* To be called after each step of the world. */
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
