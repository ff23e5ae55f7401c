/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Queue of QPs that wait for the in-flight budget of the process (ENG_TX_BUDGET).  Each cycle that
 * makes room serves them in order, a few bursts each; while the queue is not empty, a QP with
 * something to send is appended, so that QPs with early ACKs do not permanently take all the room.
 */
#ifndef UROCE_PROGRESS_SHARE_QUEUE_H
#define UROCE_PROGRESS_SHARE_QUEUE_H

#include <stdatomic.h>

#include "progress.h"

/* Changed under turn_lock. */
struct share_queue {
	struct progress_qp *first, *last;
	atomic_bool waiting; /* true if not empty; read without the lock */
};

static inline bool share_queue_waits(const struct share_queue *queue)
{
	return atomic_load_explicit(&queue->waiting, memory_order_relaxed);
}

/* Appends qp unless it is in the queue. */
void share_queue_add(struct share_queue *queue, struct progress_qp *qp);
/* Puts the QP that was removed last back to the front. */
void share_queue_put_back(struct share_queue *queue, struct progress_qp *qp);
/* Removes and returns the first QP, or NULL. */
struct progress_qp *share_queue_take(struct share_queue *queue);
/* Removes qp if it is in the queue. */
void share_queue_remove(struct share_queue *queue, struct progress_qp *qp);

#endif
