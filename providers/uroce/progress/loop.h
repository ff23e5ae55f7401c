/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* One progress cycle: receives a few batches, expires deadlines, transmits what may be sent. */
#ifndef UROCE_PROGRESS_LOOP_H
#define UROCE_PROGRESS_LOOP_H

#include "progress_priv.h"

enum progress_caller {
	PROGRESS_CALLER_POLLER,	 /* an application thread, which will poll again soon */
	PROGRESS_CALLER_THREAD,	 /* no application thread polls; nothing may be left for the next
				    cycle */
	PROGRESS_CALLER_STOPPER, /* a thread that stops a QP; all packets must be received */
};

struct progress_cycle {
	struct progress *progress;
	enum progress_caller caller;
	uint64_t now; /* start of the cycle, or later time of receipt (eng_needs_timestamp()) */
	struct progress_qp *locked_qp; /* QP that is locked, inside the hooks, or NULL */
	struct progress_qp *scheduled; /* QPs to serve at the end, linked by next_in_cycle */
	struct progress_qp **scheduled_end;
	unsigned int packets; /* number received */
	/*
	 * True if the cycle receives until nothing is left, at most ALL_BATCHES batches per
	 * address.
	 */
	bool drain;
	bool more_to_receive; /* there may be more to receive */
	bool had_work;	      /* something was received, due or sent */
	bool blocked;	      /* a socket buffer or ring was full */
};

/* Result of a cycle. */
enum progress_result {
	PROGRESS_IDLE,
	PROGRESS_WORKED,
	PROGRESS_BLOCKED, /* a socket buffer or ring is full: retry soon */
};

/* Runs one cycle.  Caller holds cycle_lock. */
enum progress_result progress_run_once(struct progress *progress, enum progress_caller caller);
/*
 * Runs a cycle that receives from the delivery socket instead of the addresses.  Caller holds
 * cycle_lock.
 */
enum progress_result progress_run_deliveries(struct progress *progress);

/* Waits for cycle_lock; pollers do not take it while a thread waits here. */
void progress_lock(struct progress *progress);
void progress_unlock(struct progress *progress);

/* ---- visit.c ---- */

/* Unlocks the QP locked before and locks qp, inside the hooks. */
void cycle_lock_qp(struct progress_cycle *cycle, struct progress_qp *qp);
/* Unlocks the QP that is locked, if any. */
void cycle_unlock_qp(struct progress_cycle *cycle);
/* Schedules qp to be served at the end of the cycle. */
void cycle_schedule_qp(struct progress_cycle *cycle, struct progress_qp *qp);

#endif
