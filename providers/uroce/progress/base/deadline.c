/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "deadline.h"

#include "util/container_of.h"

void deadline_init(struct deadline_heap *heap)
{
	pthread_mutex_init(&heap->lock, NULL);
	heap->queue.first = NULL;
	atomic_init(&heap->earliest, ENG_NEVER);
}

void deadline_fini(struct deadline_heap *heap)
{
	pthread_mutex_destroy(&heap->lock);
}

/* Atomic, since posting threads read it without the lock. */
static void set_queued(struct progress_qp *qp, uint64_t when)
{
	__atomic_store_n(&qp->queued_deadline, when, __ATOMIC_RELAXED);
}

static void publish_earliest(struct deadline_heap *heap)
{
	uint64_t when = heap->queue.first ? heap->queue.first->at : ENG_NEVER;

	/*
	 * The progress thread stores its wake-up time and then reads earliest (armed_sleep_ns());
	 * the caller stores earliest and then reads the wake-up time.  So at least one of them
	 * notices the other.
	 */
	atomic_store_explicit(&heap->earliest, when, memory_order_seq_cst);
}

static void remove_node(struct deadline_heap *heap, struct progress_qp *qp)
{
	heap_remove(&heap->queue, &qp->deadline);
	set_queued(qp, ENG_NEVER);
	publish_earliest(heap);
}

void deadline_init_qp(struct progress_qp *qp)
{
	qp->deadline = (struct heap_node){ .in = false };
	set_queued(qp, ENG_NEVER);
}

void deadline_remove_qp(struct deadline_heap *heap, struct progress_qp *qp)
{
	pthread_mutex_lock(&heap->lock);
	if (qp->deadline.in)
		remove_node(heap, qp);
	pthread_mutex_unlock(&heap->lock);
}

bool deadline_queue(struct deadline_heap *heap, struct progress_qp *qp, uint64_t when)
{
	bool earliest = false;

	pthread_mutex_lock(&heap->lock);
	if (when < deadline_queued(qp)) {
		set_queued(qp, when);
		heap_set(&heap->queue, &qp->deadline, when);
		earliest = heap->queue.first == &qp->deadline;
		if (earliest)
			publish_earliest(heap);
	}
	pthread_mutex_unlock(&heap->lock);
	return earliest;
}

struct progress_qp *deadline_pop(struct deadline_heap *heap, uint64_t now)
{
	struct progress_qp *qp = NULL;

	if (deadline_earliest(heap) > now)
		return NULL;
	pthread_mutex_lock(&heap->lock);
	if (heap->queue.first && heap->queue.first->at <= now) {
		qp = container_of(heap->queue.first, struct progress_qp, deadline);
		remove_node(heap, qp);
	}
	pthread_mutex_unlock(&heap->lock);
	return qp;
}
