/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* One progress cycle: receives a few batches, expires deadlines, transmits what may be sent. */
#ifndef UROCE_PROGRESS_TURN_H
#define UROCE_PROGRESS_TURN_H

#include "instance.h"

enum turn_maker {
	TURN_POLLER,  /* an application thread, which will poll again soon */
	TURN_HELPER,  /* no application thread polls; nothing may be left for the next cycle */
	TURN_STOPPER, /* a thread that stops a QP; all packets must be received */
};

struct turn {
	struct progress *progress;
	enum turn_maker caller;
	uint64_t now; /* read before receiving, and again where that would be too early */
	struct progress_qp *visited;   /* QP that is locked, inside the hooks, or NULL */
	struct progress_qp *scheduled; /* QPs to serve at the end, linked by next_in_cycle */
	struct progress_qp **scheduled_end;
	unsigned int packets; /* number received */
	/* Receive until nothing is left, at most ALL_BATCHES batches per address. */
	bool drain;
	bool more_to_receive; /* there may be more to receive */
	bool had_work;	      /* something was received, due or sent */
	bool blocked;	      /* a socket buffer or ring was full */
};

/* Result of a cycle. */
enum turn_result {
	TURN_IDLE,
	TURN_WORKED,
	TURN_BLOCKED, /* a socket buffer or ring is full: retry soon */
};

/* Caller holds turn_lock. */
enum turn_result turn_make(struct progress *progress, enum turn_maker caller);
/* Also receives from the delivery socket.  Caller holds turn_lock. */
enum turn_result turn_take_deliveries(struct progress *progress);

/* Waits for turn_lock; pollers do not take it while a thread waits here. */
void turn_lock(struct progress *progress);
void turn_unlock(struct progress *progress);

/* ---- visit.c ---- */

/* Unlocks the QP locked before and locks qp, inside the hooks. */
void turn_visit(struct turn *turn, struct progress_qp *qp);
/* Unlocks the QP that is locked, if any. */
void turn_leave(struct turn *turn);
/* Schedules qp to be served at the end of the cycle. */
void turn_schedule(struct turn *turn, struct progress_qp *qp);

#endif
