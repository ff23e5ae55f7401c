/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "deadline.h"

#include <errno.h>
#include <stdlib.h>

enum {
	FIRST_CAPACITY = 64,
	NOT_QUEUED = 0, /* no entry has this index */
};

void deadline_init(struct deadline_heap *heap)
{
	pthread_mutex_init(&heap->lock, NULL);
	heap->entry = NULL;
	heap->count = 0;
	heap->capacity = 0;
	atomic_init(&heap->earliest, ENG_NEVER);
}

void deadline_fini(struct deadline_heap *heap)
{
	pthread_mutex_destroy(&heap->lock);
	free(heap->entry);
}

/* Atomic, since posting threads read it without the lock. */
static void set_queued(struct progress_qp *qp, uint64_t when)
{
	__atomic_store_n(&qp->queued_deadline, when, __ATOMIC_RELAXED);
}

static void put_entry(struct deadline_heap *heap, uint32_t index, struct progress_qp *qp)
{
	heap->entry[index] = qp;
	qp->heap_index = index;
}

static void publish_earliest(struct deadline_heap *heap)
{
	uint64_t when = heap->count ? deadline_queued(heap->entry[1]) : ENG_NEVER;

	/*
	 * The progress thread stores its wake-up time and then reads earliest (armed_sleep_ns());
	 * the caller stores earliest and then reads the wake-up time.  So at least one of them
	 * notices the other.
	 */
	atomic_store_explicit(&heap->earliest, when, memory_order_seq_cst);
}

static void sift_up(struct deadline_heap *heap, uint32_t index)
{
	struct progress_qp *qp = heap->entry[index];

	while (index > 1 && deadline_queued(heap->entry[index / 2]) > deadline_queued(qp)) {
		put_entry(heap, index, heap->entry[index / 2]);
		index /= 2;
	}
	put_entry(heap, index, qp);
}

static void sift_down(struct deadline_heap *heap, uint32_t index)
{
	struct progress_qp *qp = heap->entry[index];

	for (;;) {
		uint32_t child = 2 * index;

		if (child < heap->count &&
		    deadline_queued(heap->entry[child + 1]) < deadline_queued(heap->entry[child]))
			child++;
		if (child > heap->count ||
		    deadline_queued(heap->entry[child]) >= deadline_queued(qp))
			break;
		put_entry(heap, index, heap->entry[child]);
		index = child;
	}
	put_entry(heap, index, qp);
}

static void remove_entry(struct deadline_heap *heap, struct progress_qp *qp)
{
	uint32_t index = qp->heap_index;
	struct progress_qp *last = heap->entry[heap->count--];

	qp->heap_index = NOT_QUEUED;
	set_queued(qp, ENG_NEVER);
	if (last == qp)
		return;
	put_entry(heap, index, last);
	sift_up(heap, index);
	sift_down(heap, last->heap_index);
}

static int grow_heap(struct deadline_heap *heap)
{
	uint32_t capacity = heap->capacity ? 2 * heap->capacity : FIRST_CAPACITY;
	struct progress_qp **entry = realloc(heap->entry, (capacity + 1) * sizeof(*entry));

	if (!entry)
		return -ENOMEM;
	heap->entry = entry;
	heap->capacity = capacity;
	return 0;
}

int deadline_add_qp(struct deadline_heap *heap, struct progress_qp *qp, uint32_t qps)
{
	int error = 0;

	qp->heap_index = NOT_QUEUED;
	set_queued(qp, ENG_NEVER);
	pthread_mutex_lock(&heap->lock);
	while (!error && heap->capacity < qps)
		error = grow_heap(heap);
	pthread_mutex_unlock(&heap->lock);
	return error;
}

void deadline_remove_qp(struct deadline_heap *heap, struct progress_qp *qp)
{
	pthread_mutex_lock(&heap->lock);
	if (qp->heap_index != NOT_QUEUED) {
		remove_entry(heap, qp);
		publish_earliest(heap);
	}
	pthread_mutex_unlock(&heap->lock);
}

bool deadline_queue(struct deadline_heap *heap, struct progress_qp *qp, uint64_t when)
{
	bool earliest = false;

	pthread_mutex_lock(&heap->lock);
	if (when < deadline_queued(qp)) {
		set_queued(qp, when);
		if (qp->heap_index == NOT_QUEUED)
			put_entry(heap, ++heap->count, qp);
		sift_up(heap, qp->heap_index);
		earliest = heap->entry[1] == qp;
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
	if (heap->count && deadline_queued(heap->entry[1]) <= now) {
		qp = heap->entry[1];
		remove_entry(heap, qp);
		publish_earliest(heap);
	}
	pthread_mutex_unlock(&heap->lock);
	return qp;
}
