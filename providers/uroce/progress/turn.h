/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * One turn: receive a few batches, expire what is due, transmit what may go.
 */
#ifndef UROCE_PROGRESS_TURN_H
#define UROCE_PROGRESS_TURN_H

#include "instance.h"

enum turn_maker {
	TURN_POLLER,  /* an application thread that will poll again at once */
	TURN_HELPER,  /* no application polls: nothing may wait for the next turn */
	TURN_STOPPER, /* an application thread stops a queue pair: nothing may stay unread */
};

struct turn {
	struct progress *progress;
	enum turn_maker maker;
	uint64_t now; /* read before the turn receives, and again where that would be too early */
	struct progress_qp *visited;   /* locked and inside the hooks, or NULL */
	struct progress_qp *scheduled; /* to be visited at the end, by next_in_turn */
	struct progress_qp **scheduled_end;
	unsigned int packets; /* received */
	bool reads_all;	      /* receives until nothing is left, within that limit */
	bool unread;	      /* there may be more to receive */
	bool worked;	      /* anything was received, due or sent */
	bool blocked;	      /* a socket was full */
};

/* What a turn came to. */
enum turn_result {
	TURN_IDLE,
	TURN_WORKED,
	TURN_BLOCKED, /* a socket is full: worth another turn in a moment */
};

/* Caller holds turn_lock. */
enum turn_result turn_make(struct progress *progress, enum turn_maker maker);
/* Receive what waits at the control socket as well.  Caller holds turn_lock. */
enum turn_result turn_take_deliveries(struct progress *progress);

/* Wait for the turn lock; pollers give way. */
void turn_lock(struct progress *progress);
void turn_unlock(struct progress *progress);

/* ---- visit.c ---- */

/* Locks qp, inside the hooks, and leaves the one that was visited before. */
void turn_visit(struct turn *turn, struct progress_qp *qp);
/* Unlocks the queue pair that is visited, if there is one. */
void turn_leave(struct turn *turn);
/* Has qp visited at the end of the turn. */
void turn_schedule(struct turn *turn, struct progress_qp *qp);

#endif
