/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* QPs of a cycle: locks one at a time, and collects those to be served at the end. */
#include "loop.h"

inline void cycle_unlock_qp(struct progress_cycle *cycle)
{
	if (!cycle->locked_qp)
		return;
	cycle->progress->hooks.leave(cycle->progress->number);
	pthread_mutex_unlock(&cycle->locked_qp->lock);
	cycle->locked_qp = NULL;
}

inline void cycle_lock_qp(struct progress_cycle *cycle, struct progress_qp *qp)
{
	if (cycle->locked_qp == qp)
		return;
	cycle_unlock_qp(cycle);
	pthread_mutex_lock(&qp->lock);
	cycle->progress->hooks.enter(cycle->progress->number);
	cycle->locked_qp = qp;
}

void cycle_schedule_qp(struct progress_cycle *cycle, struct progress_qp *qp)
{
	if (qp->in_cycle)
		return;
	qp->in_cycle = true;
	qp->next_in_cycle = NULL;
	*cycle->scheduled_end = qp;
	cycle->scheduled_end = &qp->next_in_cycle;
}
