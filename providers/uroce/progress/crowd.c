/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "crowd.h"

#include <stddef.h>

static void publish(struct crowd *crowd)
{
	atomic_store_explicit(&crowd->waiting, crowd->first != NULL, memory_order_relaxed);
}

void crowd_join(struct crowd *crowd, struct progress_qp *qp)
{
	if (qp->crowded)
		return;
	qp->crowded = true;
	qp->next_crowded = NULL;
	if (crowd->first)
		crowd->last->next_crowded = qp;
	else
		crowd->first = qp;
	crowd->last = qp;
	publish(crowd);
}

void crowd_rejoin(struct crowd *crowd, struct progress_qp *qp)
{
	qp->crowded = true;
	qp->next_crowded = crowd->first;
	if (!crowd->first)
		crowd->last = qp;
	crowd->first = qp;
	publish(crowd);
}

struct progress_qp *crowd_next(struct crowd *crowd)
{
	struct progress_qp *qp = crowd->first;

	if (!qp)
		return NULL;
	qp->crowded = false;
	crowd->first = qp->next_crowded;
	publish(crowd);
	return qp;
}

void crowd_leave(struct crowd *crowd, struct progress_qp *qp)
{
	struct progress_qp **from = &crowd->first, *before = NULL;

	if (!qp->crowded)
		return;
	while (*from != qp) {
		before = *from;
		from = &before->next_crowded;
	}
	*from = qp->next_crowded;
	if (crowd->last == qp)
		crowd->last = before;
	qp->crowded = false;
	publish(crowd);
}
