/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * How two ends find each other and agree: over one stream, in network byte order.  The
 * active end says what to run and offers a depth, the passive one answers with that or less, and
 * both take the answer; then addresses of queue pairs go both ways.
 */
#ifndef UROCE_FLOW_RENDEZVOUS_H
#define UROCE_FLOW_RENDEZVOUS_H

#include "device.h"
#include "stream.h"

enum { MIN_DEPTH = 4, MAX_DEPTH = 8192, MAX_COUNT = 100000000 };

struct run_plan {
	char scheme[32], scenario[32];
	uint64_t seed;
	uint32_t depth, bytes, links, count[FLOW_SIDES], requests;
	uint64_t service_ns[FLOW_SIDES];
	uint32_t apart; /* the ends are not on one host; this is not sent */
};

/* The active side is 0.  plan->depth becomes what was agreed.  0 or -1 with device->error. */
int rendezvous_agree(struct stream stream, uint32_t side, struct device *device,
		     struct run_plan *plan);
int rendezvous_addresses(struct stream stream, struct device *device, bool rnr_retry);
/* Both ends have come here. */
int rendezvous_barrier(struct stream stream);
/* What is to be added to the peer's times to get ours; by the quickest of some exchanges. */
int rendezvous_clock(struct stream stream, uint32_t side, int64_t *offset_ns);

/* A scenario by its name with the numbers of a plan; false: no such scenario. */
bool plan_scenario(const struct run_plan *plan, struct scenario *sc);
void plan_from_scenario(struct run_plan *plan, const struct scenario *sc);

uint64_t clock_ns(void);

#endif
