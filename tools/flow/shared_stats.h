/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Statistics that both endpoints write during a run, in shared memory if they are on one host; the
 * checker derives the verdict from them.  Each field is written by its own side only, and read by
 * the other side and the checker.  A receive is counted after it has been posted, a message before
 * it is posted: so if more messages are sent than receives posted it is an overrun.
 */
#ifndef UROCE_FLOW_SHARED_STATS_H
#define UROCE_FLOW_SHARED_STATS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "scenario.h"

enum { STATS_ERROR_TEXT = 160 };

/* Results of one endpoint, written at the end of the run; times in nanoseconds. */
struct endpoint_result {
	uint64_t first_sent_ns;		   /* time of the first message sent */
	uint64_t last_consumed_ns;	   /* time of the last message consumed */
	uint64_t data_sent, control_sent;  /* messages; control includes updates by WRITE */
	uint64_t consumed, consumed_bytes; /* application messages */
	uint64_t blocked_ns;		   /* total time for which a message was blocked */
	uint64_t max_blocked_ns;	   /* longest such time */
	uint64_t stalls;		   /* number of times that a message was blocked */
	uint64_t receives;		   /* maximum number of posted receives, all connections */
	uint64_t p50_ns, p99_ns; /* latency of consumed messages; round trip of requests */
	uint64_t free_p50_ns, free_p99_ns; /* time to completion of WRITEs and READs */
	/* Jain's index of the messages consumed per connection, when half of all were consumed */
	uint32_t fairness_permille;
	/*
	 * at the end, per connection: number of messages that may be sent, of unreported receives
	 */
	int32_t allowance[FLOW_LINKS], unreported[FLOW_LINKS];
};

struct endpoint_stats {
	/* Per connection; receives of an SRQ are counted in posted[0]. */
	_Atomic uint64_t posted[FLOW_LINKS];  /* receives posted since the start */
	_Atomic uint64_t sent[FLOW_LINKS];    /* messages sent that consume a receive */
	_Atomic uint64_t arrived;	      /* messages received that consume a receive */
	_Atomic uint64_t sent_all;	      /* sum of sent[] */
	_Atomic uint64_t data_sent, consumed; /* application messages */
	_Atomic uint64_t control_sent;	      /* updates */
	_Atomic uint64_t overruns;	      /* messages sent without a posted receive */
	/* number of checks that found an allowance above the posted receives */
	_Atomic uint64_t excess;
	_Atomic uint64_t bogus_updates; /* updates that cannot be true */
	_Atomic uint64_t loops;		/* iterations of the endpoint's loop */
	_Atomic uint32_t depth;		/* negotiated depth */
	_Atomic uint32_t idle;		/* nothing to do and no deadline */
	_Atomic uint32_t done;		/* all messages sent, and all of the peer's consumed */
	_Atomic uint32_t error;		/* enum ibv_wc_status, or 1000 for other errors */
	_Atomic uint32_t finished;	/* result is valid */
	struct endpoint_result result;
	char what[STATS_ERROR_TEXT]; /* error message, or the reason why nothing may be sent */
};

struct run_stats {
	_Atomic uint32_t stop; /* the run is over */
	struct endpoint_stats side[FLOW_SIDES];
};

static inline void stats_add(_Atomic uint64_t *count, uint64_t n)
{
	atomic_fetch_add_explicit(count, n, memory_order_acq_rel);
}

static inline uint64_t stats_get(_Atomic uint64_t *count)
{
	return atomic_load_explicit(count, memory_order_acquire);
}

#endif
