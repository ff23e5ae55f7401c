/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What both ends write down while they run, in memory that they share where they are on one host:
 * the truth that schemes are judged by.  Each field has one writer, its side; the other side and
 * the judge read.  A receive is entered after it was posted, and a message before: so where
 * more is sent than posted there is an overrun.
 */
#ifndef UROCE_FLOW_LEDGER_H
#define UROCE_FLOW_LEDGER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "scenario.h"

enum { LEDGER_WHAT = 160 };

/* One end's results, written before it ends; times in nanoseconds. */
struct side_result {
	uint64_t begun_ns, ended_ns;	   /* first message sent, last one consumed */
	uint64_t data_sent, control_sent;  /* messages; control with those by RDMA WRITE */
	uint64_t consumed, consumed_bytes; /* of the application's messages */
	uint64_t blocked_ns, longest_ns;   /* a message was there and might not go: sum, longest */
	uint64_t stalls;		   /* times that it might not */
	uint64_t receives;		   /* posted at most, for all connections */
	uint64_t p50_ns, p99_ns;	   /* of what this end consumed; round trips for requests */
	uint64_t free_p50_ns, free_p99_ns; /* WRITE and READ, until they were complete */
	uint32_t fairness_permille;	   /* Jain's index over the connections, at half of all */
	/* At the end, of each connection: may still be sent by this end; its receives untold. */
	int32_t allowance[FLOW_LINKS], hidden[FLOW_LINKS];
};

struct side_ledger {
	/* Of a connection; with a shared receive queue all receives are entered at 0. */
	_Atomic uint64_t posted[FLOW_LINKS]; /* receives, ever */
	_Atomic uint64_t sent[FLOW_LINKS];   /* messages that take one, ever */
	_Atomic uint64_t arrived;	     /* messages that took one */
	_Atomic uint64_t sent_all;
	_Atomic uint64_t data_sent, consumed; /* of the application's, for progress */
	_Atomic uint64_t control_sent;
	_Atomic uint64_t overruns; /* messages sent although no receive was posted */
	_Atomic uint64_t excess;   /* looks at which more was allowed than was posted */
	_Atomic uint64_t lied;	   /* news that cannot be true */
	_Atomic uint64_t loops;	   /* turns of the end's loop */
	_Atomic uint32_t depth;	   /* that was agreed */
	_Atomic uint32_t ready;	   /* connected, receives posted */
	_Atomic uint32_t idle;	   /* nothing can be done, and no time is waited for */
	_Atomic uint32_t done;	   /* all of its own was sent, and all of the peer's consumed */
	_Atomic uint32_t error;	   /* enum ibv_wc_status, or 1000 + errno */
	_Atomic uint32_t ended;	   /* the result is there */
	struct side_result result;
	char what[LEDGER_WHAT]; /* of an error, or why nothing may be sent */
};

struct ledger {
	_Atomic uint32_t go;   /* both are ready */
	_Atomic uint32_t stop; /* the judge has spoken */
	struct side_ledger side[FLOW_SIDES];
};

static inline void ledger_add(_Atomic uint64_t *count, uint64_t n)
{
	atomic_fetch_add_explicit(count, n, memory_order_acq_rel);
}

static inline uint64_t ledger_get(_Atomic uint64_t *count)
{
	return atomic_load_explicit(count, memory_order_acquire);
}

#endif
