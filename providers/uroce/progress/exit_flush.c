/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "thread.h"

#include <unistd.h>

#include "progress/tx/tx.h"
#include "loop.h"

enum {
	EXIT_POLL_US = 100,
};

/* Sets *pending if qp has a pending ACK.  Callback of qpn_table_for_each(). */
static void find_pending_ack(struct progress_qp *qp, void *pending)
{
	*(bool *)pending |= eng_resp_pending(qp->engine) != ENG_RESP_NONE;
}

/*
 * Sends the pending ACK of qp several times (eng_send_final_acks()).  Callback of
 * qpn_table_for_each().
 */
static void send_final_acks(struct progress_qp *qp, void *progress)
{
	if (eng_resp_pending(qp->engine) == ENG_RESP_NONE)
		return;
	eng_send_final_acks(qp->engine);
	progress_qp_changed(progress, qp);
}

/* Returns true if a QP has a pending ACK, or may have one because another thread runs a cycle. */
static bool has_pending_acks(struct progress *progress)
{
	bool pending = false;

	if (pthread_mutex_trylock(&progress->cycle_lock))
		return true;
	qpn_table_for_each(&progress->table, false, find_pending_ack, &pending);
	progress_unlock(progress);
	return pending;
}

void exit_flush_start(struct progress *progress)
{
	if (!has_pending_acks(progress))
		return;
	atomic_store(&progress->thread.exit_requested, true);
	wakeup_thread(progress);
}

void exit_flush_wait(struct progress *progress, uint64_t until)
{
	while (atomic_load(&progress->thread.exit_requested) && progress_now() < until)
		usleep(EXIT_POLL_US);
}

void exit_flush_run(struct progress *progress)
{
	progress_lock(progress);
	qpn_table_for_each(&progress->table, false, send_final_acks, progress);
	progress_unlock(progress);
	atomic_store(&progress->thread.exit_requested, false);
}
