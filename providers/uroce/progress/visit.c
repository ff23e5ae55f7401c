/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* QPs of a cycle: locks one at a time, and collects those to be served at the end. */
#include "turn.h"

inline void turn_leave(struct turn *turn)
{
	if (!turn->visited)
		return;
	turn->progress->hooks.leave(turn->progress->number);
	pthread_mutex_unlock(&turn->visited->lock);
	turn->visited = NULL;
}

inline void turn_visit(struct turn *turn, struct progress_qp *qp)
{
	if (turn->visited == qp)
		return;
	turn_leave(turn);
	pthread_mutex_lock(&qp->lock);
	turn->progress->hooks.enter(turn->progress->number);
	turn->visited = qp;
}

void turn_schedule(struct turn *turn, struct progress_qp *qp)
{
	if (qp->in_turn)
		return;
	qp->in_turn = true;
	qp->next_in_cycle = NULL;
	*turn->scheduled_end = qp;
	turn->scheduled_end = &qp->next_in_cycle;
}
