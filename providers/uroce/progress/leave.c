/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "leave.h"

#include <unistd.h>

#include "transmit.h"
#include "turn.h"

enum {
	LEAVE_PAUSE_US = 100,
};

/* Callback of table_visit(). */
static void look(struct progress_qp *qp, void *owed)
{
	*(bool *)owed |= eng_resp_pending(qp->engine) != ENG_RESP_NONE;
}

/* Callback of table_visit(). */
static void send_owed(struct progress_qp *qp, void *progress)
{
	if (eng_resp_pending(qp->engine) == ENG_RESP_NONE)
		return;
	eng_send_final_acks(qp->engine);
	progress_changed(progress, qp);
}

/* Returns true if a QP has a pending ACK, or another thread runs a cycle, so that one might. */
static bool is_anything_owed(struct progress *progress)
{
	bool owed = false;

	if (pthread_mutex_trylock(&progress->turn_lock))
		return true;
	table_visit(&progress->table, false, look, &owed);
	turn_unlock(progress);
	return owed;
}

void leave_begin(struct progress *progress)
{
	if (!is_anything_owed(progress))
		return;
	atomic_store(&progress->helper.leaves, true);
	wakeup_helper(progress);
}

void leave_await(struct progress *progress, uint64_t until)
{
	while (atomic_load(&progress->helper.leaves) && progress_now() < until)
		usleep(LEAVE_PAUSE_US);
}

void leave_send(struct progress *progress)
{
	turn_lock(progress);
	table_visit(&progress->table, false, send_owed, progress);
	turn_unlock(progress);
	atomic_store(&progress->helper.leaves, false);
}
