/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Queue of QPs that wait for the in-flight budget of the process (ENG_TX_BUDGET).  Each cycle that
 * makes room serves them in order, a few bursts each; while the queue is not empty, a QP with
 * something to send is appended, so that QPs with early ACKs do not permanently take all the room.
 */
#ifndef UROCE_PROGRESS_BASE_BUDGET_QUEUE_H
#define UROCE_PROGRESS_BASE_BUDGET_QUEUE_H

#include <stdatomic.h>

#include "progress/progress.h"

/* Changed under cycle_lock. */
struct budget_queue {
	TAILQ_HEAD(, progress_qp) qps;
	atomic_bool waiting; /* true if not empty; read without the lock */
};

static inline bool budget_queue_is_waiting(const struct budget_queue *queue)
{
	return atomic_load_explicit(&queue->waiting, memory_order_relaxed);
}

/* Appends qp unless it is in the queue. */
void budget_queue_push(struct budget_queue *queue, struct progress_qp *qp);
/* Puts qp, which budget_queue_pop() has just returned, back to the front. */
void budget_queue_push_front(struct budget_queue *queue, struct progress_qp *qp);
/* Removes and returns the first QP, or NULL. */
struct progress_qp *budget_queue_pop(struct budget_queue *queue);
/* Removes qp if it is in the queue. */
void budget_queue_remove(struct budget_queue *queue, struct progress_qp *qp);

#endif
