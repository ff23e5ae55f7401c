/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The queue of QPs that wait because all QPs of the process together have enough under way
 * (ENG_TX_SHARE).  Each turn that brings room serves them in order, a little each; while anybody
 * waits, a QP with something to send goes to the end of the queue, so that those who are
 * acknowledged first do not take all the room for ever.
 */
#ifndef UROCE_PROGRESS_CROWD_H
#define UROCE_PROGRESS_CROWD_H

#include <stdatomic.h>

#include "progress.h"

/* Changed under turn_lock. */
struct crowd {
	struct progress_qp *first, *last;
	atomic_bool waiting; /* is anybody in it?  Read without the lock. */
};

static inline bool crowd_waits(const struct crowd *crowd)
{
	return atomic_load_explicit(&crowd->waiting, memory_order_relaxed);
}

/* qp goes to the end, unless it is in. */
void crowd_join(struct crowd *crowd, struct progress_qp *qp);
/* The first goes back to its place. */
void crowd_rejoin(struct crowd *crowd, struct progress_qp *qp);
/* Take out the first; NULL when nobody waits. */
struct progress_qp *crowd_next(struct crowd *crowd);
/* Take out qp, if it is in. */
void crowd_leave(struct crowd *crowd, struct progress_qp *qp);

#endif
