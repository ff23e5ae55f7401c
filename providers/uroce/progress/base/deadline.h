/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Deadlines of QPs in a heap (util/heap.h).
 *
 * Updates are lazy, because deadlines move with almost every packet, and nearly always to a later
 * time: a QP is queued again only if its deadline has become earlier than its queued time.  A
 * thread that removes a QP from the heap calls eng_deadline() again and queues the QP with the
 * result.
 *
 * Any thread may call; the lock inside is the innermost of all.
 */
#ifndef UROCE_PROGRESS_BASE_DEADLINE_H
#define UROCE_PROGRESS_BASE_DEADLINE_H

#include <pthread.h>
#include <stdatomic.h>

#include "progress/progress.h"

struct deadline_heap {
	pthread_mutex_t lock;
	struct heap queue;
	atomic_uint_fast64_t earliest; /* time of the first, or ENG_NEVER; read without the lock */
};

void deadline_init(struct deadline_heap *heap);
void deadline_fini(struct deadline_heap *heap);

/* Initializes the fields of qp, which is not queued. */
void deadline_init_qp(struct progress_qp *qp);
/* Removes qp, if it is queued. */
void deadline_remove_qp(struct deadline_heap *heap, struct progress_qp *qp);

/*
 * Queues qp for the time when (nanoseconds of progress_now()), unless it is queued for an earlier
 * one.  Returns true if it is now the earliest of all.
 */
bool deadline_queue(struct deadline_heap *heap, struct progress_qp *qp, uint64_t when);

/* Removes and returns the earliest QP that is due at now, or returns NULL. */
struct progress_qp *deadline_pop(struct deadline_heap *heap, uint64_t now);

/* Returns the earliest deadline, or ENG_NEVER. */
static inline uint64_t deadline_earliest(const struct deadline_heap *heap)
{
	return atomic_load_explicit(&heap->earliest, memory_order_seq_cst);
}

/* Returns the time for which qp is queued, or ENG_NEVER. */
static inline uint64_t deadline_queued(const struct progress_qp *qp)
{
	return __atomic_load_n(&qp->queued_deadline, __ATOMIC_RELAXED);
}

#endif
