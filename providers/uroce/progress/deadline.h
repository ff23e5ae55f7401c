/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The queue pairs that have to be looked at when a time comes: a binary heap, earliest first.
 *
 * Updates are lazy, because deadlines move with almost every packet, and nearly always later: a QP
 * is queued anew only when its deadline has become earlier than the one it is queued with.  A
 * thread that takes a QP out asks eng_deadline() again and queues it with the answer.
 *
 * Any thread may call; a small lock is inside, which is the innermost of all.
 */
#ifndef UROCE_PROGRESS_DEADLINE_H
#define UROCE_PROGRESS_DEADLINE_H

#include <pthread.h>
#include <stdatomic.h>

#include "progress.h"

struct deadline_heap {
	pthread_mutex_t lock;
	struct progress_qp **entry; /* entry[1] is the earliest; entry[0] is not used */
	uint32_t count;
	uint32_t capacity;
	atomic_uint_fast64_t earliest; /* of entry[1], or ENG_NEVER; read without the lock */
};

void deadline_init(struct deadline_heap *heap);
void deadline_fini(struct deadline_heap *heap);

/*
 * Make qp's fields ready, and room for qps QPs in all, so that queueing cannot fail later.  0 or
 * -ENOMEM.
 */
int deadline_add_qp(struct deadline_heap *heap, struct progress_qp *qp, uint32_t qps);
/* Take qp out, if it is in. */
void deadline_remove_qp(struct deadline_heap *heap, struct progress_qp *qp);

/*
 * Queue qp for the time when (nanoseconds of progress_now()), unless it is queued for an earlier
 * one.  True when it is now the earliest of all.
 */
bool deadline_queue(struct deadline_heap *heap, struct progress_qp *qp, uint64_t when);

/* The earliest QP that is due at now, taken out; or NULL. */
struct progress_qp *deadline_pop(struct deadline_heap *heap, uint64_t now);

/* When the earliest is due, or ENG_NEVER. */
static inline uint64_t deadline_earliest(const struct deadline_heap *heap)
{
	return atomic_load_explicit(&heap->earliest, memory_order_seq_cst);
}

/* What qp is queued for, or ENG_NEVER. */
static inline uint64_t deadline_queued(const struct progress_qp *qp)
{
	return __atomic_load_n(&qp->queued_deadline, __ATOMIC_RELAXED);
}

#endif
