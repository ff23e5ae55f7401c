/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Round-trip time of a queue pair, and the probe timeout that follows from it (RFC 9002, sections
 * 5.3 and 6.2.1).  ACKs are cumulative and carry no time, so one packet with AckReq is timed at a
 * time, and none while packets are sent again (RFC 6298, section 3).
 */
#ifndef UROCE_ENGINE_RECOVERY_RTT_H
#define UROCE_ENGINE_RECOVERY_RTT_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/types.h"

/*
 * Minimum margin of the probe timeout (kGranularity of RFC 9002): longer than the response time of
 * a busy process on the same host.
 */
#define RTT_GRANULARITY_NS UINT64_C(300000)

struct rtt {
	uint64_t smoothed; /* ns; 0: there has been no sample */
	uint64_t variance; /* ns; mean deviation from smoothed */
	uint64_t timed_at; /* when the packet with timed_psn was sent; 0: none is timed */
	uint32_t timed_psn;
};

static inline bool rtt_is_known(const struct rtt *rtt)
{
	return rtt->smoothed > 0;
}

static inline bool rtt_is_timing(const struct rtt *rtt)
{
	return rtt->timed_at != 0;
}

/* To be called when the packet with this PSN is sent: starts to time it. */
static inline void rtt_start(struct rtt *rtt, uint32_t psn, uint64_t now)
{
	rtt->timed_psn = psn;
	rtt->timed_at = now;
}

static inline void rtt_cancel(struct rtt *rtt)
{
	rtt->timed_at = 0;
}

/* To be called when the timed packet has been acknowledged: updates the estimates. */
static inline void rtt_sample(struct rtt *rtt, uint64_t now)
{
	uint64_t latest = elapsed(rtt->timed_at, now), difference;

	rtt->timed_at = 0;
	if (!rtt_is_known(rtt)) {
		rtt->smoothed = latest;
		rtt->variance = latest / 2;
		return;
	}
	difference = latest > rtt->smoothed ? latest - rtt->smoothed : rtt->smoothed - latest;
	rtt->variance = rtt->variance - rtt->variance / 4 + difference / 4;
	rtt->smoothed = rtt->smoothed - rtt->smoothed / 8 + latest / 8;
}

/* Probe timeout in ns. */
static inline uint64_t rtt_probe_timeout(const struct rtt *rtt)
{
	uint64_t margin = 4 * rtt->variance;

	return rtt->smoothed + (margin < RTT_GRANULARITY_NS ? RTT_GRANULARITY_NS : margin);
}

#endif
