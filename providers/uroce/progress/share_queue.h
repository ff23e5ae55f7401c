/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The queue of QPs that wait because all QPs of the process together have enough under way
 * (ENG_TX_BUDGET).  Each turn that brings room serves them in order, a little each; while the
 * queue is not empty, a QP with something to send goes to its end, so that QPs that are
 * acknowledged early do not take all the room for ever.
 */
#ifndef UROCE_PROGRESS_SHARE_QUEUE_H
#define UROCE_PROGRESS_SHARE_QUEUE_H

#include <stdatomic.h>

#include "progress.h"

/* Changed under turn_lock. */
struct share_queue {
	struct progress_qp *first, *last;
	atomic_bool waiting; /* is it not empty?  Read without the lock. */
};

static inline bool share_queue_waits(const struct share_queue *queue)
{
	return atomic_load_explicit(&queue->waiting, memory_order_relaxed);
}

/* qp goes to the end, unless it is in. */
void share_queue_add(struct share_queue *queue, struct progress_qp *qp);
/* The first goes back to its place. */
void share_queue_put_back(struct share_queue *queue, struct progress_qp *qp);
/* Take out the first; NULL when it is empty. */
struct progress_qp *share_queue_take(struct share_queue *queue);
/* Take out qp, if it is in. */
void share_queue_remove(struct share_queue *queue, struct progress_qp *qp);

#endif
