/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "thread.h"

#include <unistd.h>

#include "progress/tx/tx.h"
#include "loop.h"

enum {
	EXIT_POLL_US = 100,
};

struct flush {
	struct progress *progress;
	bool blocked; /* a socket buffer or ring was full */
};

/*
 * Sends the pending ACK of qp several times (eng_send_final_acks()).  Callback of
 * qpn_table_for_each(); caller holds cycle_lock, so no ACK is left to a later cycle because no
 * staging buffer is free.
 */
static void send_final_acks(struct progress_qp *qp, void *arg)
{
	struct flush *flush = arg;
	struct progress *progress = flush->progress;
	struct eng_tx_ctx ctx =
		tx_ctx(progress, qp, ENG_TX_TRIGGER_FINAL, progress_now(), false, false);
	enum tx_result end;
	unsigned int bursts;

	if (eng_resp_pending(qp->engine) == ENG_RESP_NONE)
		return;
	eng_send_final_acks(qp->engine);
	progress->hooks.enter(progress->number);
	end = tx_run(progress, qp, &ctx, TX_BURSTS_MAX, progress->cycle_tx, &bursts);
	progress->hooks.leave(progress->number);
	tx_update_deadline(progress, qp);
	if (end != TX_DONE)
		tx_schedule(progress, qp, false);
	flush->blocked |= end == TX_BLOCKED;
}

void exit_flush_start(struct progress *progress)
{
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
	struct flush flush = { .progress = progress };

	progress_lock(progress);
	/* Before the cycle, which may wait for a lock that the interrupted thread holds. */
	qpn_table_for_each(&progress->table, false, send_final_acks, &flush);
	flush.blocked |= progress_run_once(progress, PROGRESS_CALLER_STOPPER) == PROGRESS_BLOCKED;
	qpn_table_for_each(&progress->table, false, send_final_acks, &flush);
	progress_unlock(progress);
	if (!flush.blocked)
		atomic_store(&progress->thread.exit_requested, false);
}
