/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Sends bursts of a QP's engine through the link.  Functions with a QP as parameter are called with
 * qp->lock held, unless noted otherwise, and tx_run() between progress_hooks.enter and .leave too.
 */
#ifndef UROCE_PROGRESS_TX_TX_H
#define UROCE_PROGRESS_TX_TX_H

#include "progress/progress_priv.h"

/* Maximum number of bursts of one QP in a row, before others are served. */
#define TX_BURSTS_MAX 8
/* Maximum number of bursts in a row of a QP that has waited for the in-flight budget. */
#define TX_BURSTS_BUDGET_QUEUE 2

enum tx_result {
	TX_DONE,      /* nothing more may be sent */
	TX_MORE,      /* max_bursts was reached */
	TX_BLOCKED,   /* own socket buffer or ring full; UC and UD: the receiver's too */
	TX_NO_BUDGET, /* the in-flight budget of all QPs is used up */
};

/* Returns the inputs of eng_transmit(). */
static inline struct eng_tx_ctx tx_ctx(struct progress *progress, const struct progress_qp *qp,
				       enum eng_tx_trigger trigger, uint64_t now, bool polled,
				       bool watched)
{
	return (struct eng_tx_ctx){
		.now = now,
		.round = poll_cycles(progress),
		.trigger = trigger,
		.sides = ENG_REQUESTS | ENG_RESPONSES,
		.polled = polled,
		.watched = watched,
		.budget_waits =
			qp->in_budget_queue || budget_queue_is_waiting(&progress->budget_queue),
	};
}

/*
 * Sends at most max_bursts bursts of the engine; *bursts is set to their number.  Sets ctx->full.
 */
enum tx_result tx_run(struct progress *progress, struct progress_qp *qp, struct eng_tx_ctx *ctx,
		      unsigned int max_bursts, struct tx_buffer *tx, unsigned int *bursts);

/* Queues the engine's next deadline, which is earlier than the queued one. */
void tx_queue_deadline(struct progress *progress, struct progress_qp *qp);
/* Queues the engine's next deadline if it is earlier than the queued one. */
static inline void tx_update_deadline(struct progress *progress, struct progress_qp *qp)
{
	if (eng_deadline_before(qp->engine, deadline_queued(qp)))
		tx_queue_deadline(progress, qp);
}

/* Schedules qp for the next cycle.  wake: wake the progress thread if armed (thread.h). */
void tx_schedule(struct progress *progress, struct progress_qp *qp, bool wake);

/*
 * Returns all scheduled QPs, linked by next_scheduled, oldest first; they stay marked as scheduled
 * until they are served.
 */
struct progress_qp *tx_take_scheduled(struct progress *progress);
/* Removes qp from the list of scheduled QPs; caller holds cycle_lock and not qp->lock. */
void tx_unschedule(struct progress *progress, struct progress_qp *qp);

/*
 * Wakes the progress thread if it is armed and a QP is scheduled: the thread may have found the
 * list empty while another thread had taken it, and put QPs back afterwards.
 */
void tx_recheck(struct progress *progress);

static inline bool tx_is_scheduled(struct progress *progress)
{
	return atomic_load_explicit(&progress->scheduled, memory_order_seq_cst);
}

/* Returns the number of buffers in the pool, at most PROGRESS_TX_BUFFERS. */
unsigned int tx_pool_size(void);
/* max_packets: maximum number of packets in a burst */
struct tx_buffer *tx_buffer_new(unsigned int max_packets);
void tx_buffer_free(struct tx_buffer *tx);
/* Sends packets that have passed the fault injector, and counts calls and errors. */
void tx_send_pieces(struct progress *progress, const struct fault_path *path,
		    const struct iovec *pieces, unsigned int count, unsigned int segment);

#endif
