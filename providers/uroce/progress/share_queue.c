/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "share_queue.h"

#include <stddef.h>

static void publish_waiting(struct share_queue *queue)
{
	atomic_store_explicit(&queue->waiting, queue->first != NULL, memory_order_relaxed);
}

void share_queue_add(struct share_queue *queue, struct progress_qp *qp)
{
	if (qp->in_share_queue)
		return;
	qp->in_share_queue = true;
	qp->next_in_share_queue = NULL;
	if (queue->first)
		queue->last->next_in_share_queue = qp;
	else
		queue->first = qp;
	queue->last = qp;
	publish_waiting(queue);
}

void share_queue_put_back(struct share_queue *queue, struct progress_qp *qp)
{
	qp->in_share_queue = true;
	qp->next_in_share_queue = queue->first;
	if (!queue->first)
		queue->last = qp;
	queue->first = qp;
	publish_waiting(queue);
}

struct progress_qp *share_queue_take(struct share_queue *queue)
{
	struct progress_qp *qp = queue->first;

	if (!qp)
		return NULL;
	qp->in_share_queue = false;
	queue->first = qp->next_in_share_queue;
	publish_waiting(queue);
	return qp;
}

void share_queue_remove(struct share_queue *queue, struct progress_qp *qp)
{
	struct progress_qp **from = &queue->first, *before = NULL;

	if (!qp->in_share_queue)
		return;
	while (*from != qp) {
		before = *from;
		from = &before->next_in_share_queue;
	}
	*from = qp->next_in_share_queue;
	if (queue->last == qp)
		queue->last = before;
	qp->in_share_queue = false;
	publish_waiting(queue);
}
