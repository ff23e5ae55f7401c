/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Out-of-band negotiation of two endpoints over a stream, in network byte order.  The active side
 * sends the plan with a proposed depth, the passive side replies with this depth or a smaller one,
 * which both use; then they exchange the addresses of their QPs.
 */
#ifndef UROCE_FLOW_OOB_H
#define UROCE_FLOW_OOB_H

#include "device.h"
#include "oob_sock.h"

enum { MIN_DEPTH = 4, MAX_DEPTH = 8192, MAX_COUNT = 100000000 };

struct run_plan {
	char scheme[32], scenario[32];
	uint64_t seed;
	uint32_t depth, bytes, links, count[FLOW_SIDES], requests;
	uint64_t service_ns[FLOW_SIDES];
	uint32_t two_hosts; /* the endpoints are on two hosts; not sent */
};

/*
 * Negotiates the plan; side 0 is the active one.  Stores the result in *plan.  This and the next
 * function return 0, or -1 with a message in device->error.
 */
int oob_negotiate(struct oob_sock sock, uint32_t side, struct device *device,
		  struct run_plan *plan);
int oob_connect(struct oob_sock sock, struct device *device, bool rnr_retry);
/* Waits until both endpoints have called it.  Returns 0 or -1. */
int oob_barrier(struct oob_sock sock);
/*
 * Measures the offset to add to the peer's timestamps, by the fastest of several round trips.
 * Returns 0 or -1.
 */
int oob_measure_clock(struct oob_sock sock, uint32_t side, int64_t *offset_ns);

/* Stores the plan's scenario with the plan's numbers in *sc.  Returns false if out of limits. */
bool plan_scenario(const struct run_plan *plan, struct scenario *sc);
void plan_from_scenario(struct run_plan *plan, const struct scenario *sc);

uint64_t clock_ns(void);

#endif
