/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Sends bursts of a QP's engine through the link.  Callers hold qp->lock; those of the functions in
 * the first group are inside the hooks as well.
 */
#ifndef UROCE_PROGRESS_TRANSMIT_H
#define UROCE_PROGRESS_TRANSMIT_H

#include "instance.h"

/* Maximum number of bursts of one QP in a row, before others are served. */
#define TRANSMIT_BURSTS 8
/* The same for a QP that has waited for the in-flight budget. */
#define TRANSMIT_BURSTS_SHARE_QUEUE 2

enum transmit_end {
	TRANSMIT_DONE,	   /* nothing more may be sent */
	TRANSMIT_MORE,	   /* max_bursts was reached */
	TRANSMIT_BLOCKED,  /* the socket buffer or ring is full */
	TRANSMIT_NO_SHARE, /* the in-flight budget of all QPs is used up */
};

/* Returns the inputs of eng_transmit(). */
static inline struct eng_tx_ctx transmit_ctx(struct progress *progress,
					     const struct progress_qp *qp,
					     enum eng_tx_trigger trigger, uint64_t now, bool polled,
					     bool watched)
{
	return (struct eng_tx_ctx){
		.now = now,
		.round = poll_turns(progress),
		.trigger = trigger,
		.sides = ENG_REQUESTS | ENG_RESPONSES,
		.polled = polled,
		.watched = watched,
		.budget_waits = qp->in_share_queue || share_queue_waits(&progress->share_queue),
	};
}

/*
 * Sends at most max_bursts bursts of the engine; *bursts is set to their number.  Sets ctx->full.
 */
enum transmit_end transmit(struct progress *progress, struct progress_qp *qp,
			   struct eng_tx_ctx *ctx, unsigned int max_bursts, struct tx_buffer *tx,
			   unsigned int *bursts);

/* Queues the engine's next deadline, which is earlier than the queued one. */
void transmit_earlier(struct progress *progress, struct progress_qp *qp);
/* Queues the engine's next deadline if it is earlier than the queued one. */
static inline void transmit_deadline(struct progress *progress, struct progress_qp *qp)
{
	if (eng_deadline_before(qp->engine, deadline_queued(qp)))
		transmit_earlier(progress, qp);
}

/* Schedules qp for the next cycle.  wake: wake the progress thread if it is armed. */
void transmit_schedule(struct progress *progress, struct progress_qp *qp, bool wake);

/*
 * Returns all scheduled QPs, linked by next_scheduled, oldest first; they stay marked as scheduled
 * until they are served.
 */
struct progress_qp *transmit_take_scheduled(struct progress *progress);
/* Removes qp from the list of scheduled QPs; caller holds turn_lock and not qp->lock. */
void transmit_unschedule(struct progress *progress, struct progress_qp *qp);

/*
 * Wakes the progress thread if it is armed and a QP is scheduled: the thread may have found the
 * list empty while another thread had taken it.
 */
void transmit_look_again(struct progress *progress);

static inline bool transmit_is_scheduled(struct progress *progress)
{
	return atomic_load_explicit(&progress->scheduled, memory_order_seq_cst);
}

/* Returns the number of buffers in the pool, at most PROGRESS_TX_BUFFERS. */
unsigned int tx_buffers_wanted(void);
/* max_packets: maximum number of packets in a burst */
struct tx_buffer *tx_buffer_new(unsigned int max_packets);
void tx_buffer_free(struct tx_buffer *tx);
/* Sends packets that have passed the fault injector, and counts calls and errors. */
void transmit_pieces(struct progress *progress, const struct fault_path *path,
		     const struct iovec *pieces, unsigned int count, unsigned int segment);

#endif
