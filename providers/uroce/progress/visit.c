/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* The queue pairs of a turn: one at a time is locked, and some are to be visited at its end. */
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
	qp->next_in_turn = NULL;
	*turn->scheduled_end = qp;
	turn->scheduled_end = &qp->next_in_turn;
}
