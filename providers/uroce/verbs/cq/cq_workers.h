/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * CQs and workers (progress.h).  A QP belongs to the worker of its receive CQ, or of its send CQ if
 * it has no receive CQ.  Polling a CQ makes progress for the CQ's own worker and for the workers of
 * all QPs that complete into it.
 */
#ifndef UROCE_VERBS_CQ_WORKERS_H
#define UROCE_VERBS_CQ_WORKERS_H

#include "verbs/uroce.h"

struct uroce_cq;

struct uroce_cq_workers {
	struct progress *own; /* constant */
	/* Set of other workers whose QPs complete into the CQ (bit n: worker n).  No lock. */
	_Atomic uint32_t other_workers;
	/* Number of attached QPs and XRC SRQs by worker; under the CQ's lock. */
	uint32_t users[PROGRESS_WORKERS];
};

/* Maximum number of workers with these settings, which is the number of completion vectors. */
unsigned int uroce_workers_max(const struct uroce_settings *settings);
/*
 * Worker of a new CQ: that of comp_vector; for vector 0 that of the calling thread, which is
 * assigned when the thread creates its first CQ.  If the worker cannot be created, worker 0.
 */
struct progress *uroce_cq_choose_worker(const struct uroce_context *context, int comp_vector);

/* Registers a QP or XRC SRQ of worker that completes into cq, and unregisters it. */
void uroce_cq_attach(struct uroce_cq *cq, struct progress *worker);
void uroce_cq_detach(struct uroce_cq *cq, struct progress *worker);
static inline uint32_t uroce_cq_other_workers(const struct uroce_cq_workers *workers)
{
	return atomic_load_explicit(&workers->other_workers, memory_order_relaxed);
}

/* Removes one worker from a set that is not empty, and returns it. */
struct progress *uroce_worker_set_pop(uint32_t *workers);

/*
 * Next worker of a loop that begins with the CQ's own worker, or NULL.  A do-while loop with it has
 * one call for all workers, which the compiler can inline.
 */
static inline struct progress *uroce_worker_set_next(uint32_t *other_workers)
{
	return __builtin_expect(*other_workers != 0, 0) ? uroce_worker_set_pop(other_workers)
							: NULL;
}

#endif
