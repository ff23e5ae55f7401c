/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "helper.h"

#include <unistd.h>

#include "transmit.h"
#include "turn.h"

enum {
	EXIT_POLL_US = 100,
};

/* Callback of table_visit(). */
static void find_pending_ack(struct progress_qp *qp, void *pending)
{
	*(bool *)pending |= eng_resp_pending(qp->engine) != ENG_RESP_NONE;
}

/* Callback of table_visit(). */
static void send_final_acks(struct progress_qp *qp, void *progress)
{
	if (eng_resp_pending(qp->engine) == ENG_RESP_NONE)
		return;
	eng_send_final_acks(qp->engine);
	progress_changed(progress, qp);
}

/* Returns true if a QP has a pending ACK, or another thread runs a cycle, so that one might. */
static bool has_pending_acks(struct progress *progress)
{
	bool pending = false;

	if (pthread_mutex_trylock(&progress->turn_lock))
		return true;
	table_visit(&progress->table, false, find_pending_ack, &pending);
	turn_unlock(progress);
	return pending;
}

void leave_begin(struct progress *progress)
{
	if (!has_pending_acks(progress))
		return;
	atomic_store(&progress->helper.exit_requested, true);
	wakeup_helper(progress);
}

void leave_await(struct progress *progress, uint64_t until)
{
	while (atomic_load(&progress->helper.exit_requested) && progress_now() < until)
		usleep(EXIT_POLL_US);
}

void leave_send(struct progress *progress)
{
	turn_lock(progress);
	table_visit(&progress->table, false, send_final_acks, progress);
	turn_unlock(progress);
	atomic_store(&progress->helper.exit_requested, false);
}
