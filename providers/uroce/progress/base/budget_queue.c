/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "budget_queue.h"

#include <stddef.h>

static void publish_waiting(struct budget_queue *queue)
{
	atomic_store_explicit(&queue->waiting, queue->first != NULL, memory_order_relaxed);
}

void budget_queue_push(struct budget_queue *queue, struct progress_qp *qp)
{
	if (qp->in_budget_queue)
		return;
	qp->in_budget_queue = true;
	qp->next_in_budget_queue = NULL;
	if (queue->first)
		queue->last->next_in_budget_queue = qp;
	else
		queue->first = qp;
	queue->last = qp;
	publish_waiting(queue);
}

void budget_queue_push_front(struct budget_queue *queue, struct progress_qp *qp)
{
	qp->in_budget_queue = true;
	qp->next_in_budget_queue = queue->first;
	if (!queue->first)
		queue->last = qp;
	queue->first = qp;
	publish_waiting(queue);
}

struct progress_qp *budget_queue_pop(struct budget_queue *queue)
{
	struct progress_qp *qp = queue->first;

	if (!qp)
		return NULL;
	qp->in_budget_queue = false;
	queue->first = qp->next_in_budget_queue;
	publish_waiting(queue);
	return qp;
}

void budget_queue_remove(struct budget_queue *queue, struct progress_qp *qp)
{
	struct progress_qp **from = &queue->first, *before = NULL;

	if (!qp->in_budget_queue)
		return;
	while (*from != qp) {
		before = *from;
		from = &before->next_in_budget_queue;
	}
	*from = qp->next_in_budget_queue;
	if (queue->last == qp)
		queue->last = before;
	qp->in_budget_queue = false;
	publish_waiting(queue);
}
