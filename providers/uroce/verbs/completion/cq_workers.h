/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * CQs and workers (progress.h).  A queue pair is in the worker of its receive CQ, or of its send CQ
 * where it has no other.  A poll of a CQ makes turns for that CQ's own worker, and for those of all
 * queue pairs that complete into it.
 */
#ifndef UROCE_VERBS_CQ_WORKERS_H
#define UROCE_VERBS_CQ_WORKERS_H

#include "verbs/uroce.h"

struct uroce_cq;

struct uroce_cq_workers {
	struct progress *own; /* constant */
	/* The other workers, bit n for worker n: those that have users.  Read without a lock. */
	_Atomic uint32_t others;
	/* Number of queue pairs and XRC SRQs by worker; under the CQ's lock. */
	uint32_t users[PROGRESS_WORKERS];
};

/* Number of workers that a process with these settings may have: its completion vectors. */
unsigned int uroce_workers_max(const struct uroce_settings *settings);
/*
 * The worker of a new CQ: that of the completion vector; for vector 0, that of the calling thread.
 * A thread gets the next worker when it makes its first CQ.  Where no further worker can be made,
 * the instance is shared.
 */
struct progress *uroce_cq_choose_worker(const struct uroce_context *context, int comp_vector);

/* Something whose completions go to cq begins or ceases to be in worker. */
void uroce_cq_attach(struct uroce_cq *cq, struct progress *worker);
void uroce_cq_detach(struct uroce_cq *cq, struct progress *worker);
static inline uint32_t uroce_cq_others(const struct uroce_cq_workers *workers)
{
	return atomic_load_explicit(&workers->others, memory_order_relaxed);
}

/* One of the workers of a set that is not empty, which is taken out of it. */
struct progress *uroce_workers_take(uint32_t *workers);

/*
 * The next worker of a walk that begins with a CQ's own, or NULL.  Such a walk has one call for all
 * workers, which the compiler can put in its place.
 */
static inline struct progress *uroce_workers_next(uint32_t *others)
{
	return __builtin_expect(*others != 0, 0) ? uroce_workers_take(others) : NULL;
}

#endif
