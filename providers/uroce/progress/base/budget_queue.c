/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "budget_queue.h"

static void publish_waiting(struct budget_queue *queue)
{
	atomic_store_explicit(&queue->waiting, !TAILQ_EMPTY(&queue->qps), memory_order_relaxed);
}

void budget_queue_push(struct budget_queue *queue, struct progress_qp *qp)
{
	if (qp->in_budget_queue)
		return;
	qp->in_budget_queue = true;
	TAILQ_INSERT_TAIL(&queue->qps, qp, budget_entry);
	publish_waiting(queue);
}

void budget_queue_push_front(struct budget_queue *queue, struct progress_qp *qp)
{
	qp->in_budget_queue = true;
	TAILQ_INSERT_HEAD(&queue->qps, qp, budget_entry);
	publish_waiting(queue);
}

struct progress_qp *budget_queue_pop(struct budget_queue *queue)
{
	struct progress_qp *qp = TAILQ_FIRST(&queue->qps);

	if (qp)
		budget_queue_remove(queue, qp);
	return qp;
}

void budget_queue_remove(struct budget_queue *queue, struct progress_qp *qp)
{
	if (!qp->in_budget_queue)
		return;
	TAILQ_REMOVE(&queue->qps, qp, budget_entry);
	qp->in_budget_queue = false;
	publish_waiting(queue);
}
