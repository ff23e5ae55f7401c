/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * From the engine of one QP to the link.  Callers hold qp->lock; those of the first group are
 * inside the hooks as well.
 */
#ifndef UROCE_PROGRESS_TRANSMIT_H
#define UROCE_PROGRESS_TRANSMIT_H

#include "instance.h"

/* So many bursts of one QP leave in one visit; then others have their turn. */
#define TRANSMIT_BURSTS 8
/* The same for a QP that has waited for share. */
#define TRANSMIT_BURSTS_SHARE_QUEUE 2

enum transmit_end {
	TRANSMIT_DONE,	   /* the engine has nothing more that may be sent */
	TRANSMIT_MORE,	   /* it has, but the visit has been long enough */
	TRANSMIT_BLOCKED,  /* the socket is full */
	TRANSMIT_NO_SHARE, /* all QPs together have enough under way */
};

/* What the engine cannot know by itself. */
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

/* Sends at most max_bursts bursts of the engine; *bursts: their number.  Sets ctx->full. */
enum transmit_end transmit(struct progress *progress, struct progress_qp *qp,
			   struct eng_tx_ctx *ctx, unsigned int max_bursts, struct tx_buffer *tx,
			   unsigned int *bursts);

/* ... which is earlier than what qp is queued for. */
void transmit_earlier(struct progress *progress, struct progress_qp *qp);
/* Queue the engine's next deadline. */
static inline void transmit_deadline(struct progress *progress, struct progress_qp *qp)
{
	if (eng_deadline_before(qp->engine, deadline_queued(qp)))
		transmit_earlier(progress, qp);
}

/* Let the next turn visit qp.  wake: the helper has to be woken if it is armed. */
void transmit_schedule(struct progress *progress, struct progress_qp *qp, bool wake);

/* All scheduled QPs, linked by next_scheduled, oldest first; each keeps its mark until visited. */
struct progress_qp *transmit_take_scheduled(struct progress *progress);
/* Take qp out of the list of scheduled QPs; caller holds the turn lock and not qp->lock. */
void transmit_unschedule(struct progress *progress, struct progress_qp *qp);

/*
 * Wake the helper, when it is armed and anything is scheduled: it may have looked while another
 * thread had the list in its hands.
 */
void transmit_look_again(struct progress *progress);

static inline bool transmit_is_scheduled(struct progress *progress)
{
	return atomic_load_explicit(&progress->scheduled, memory_order_seq_cst);
}

/* How many the stock should have: at most PROGRESS_TX_BUFFERS. */
unsigned int tx_buffers_wanted(void);
/* max_packets: of a burst. */
struct tx_buffer *tx_buffer_new(unsigned int max_packets);
void tx_buffer_free(struct tx_buffer *tx);
/* Send what the fault injector lets through, counting calls and what fails. */
void transmit_pieces(struct progress *progress, const struct fault_path *path,
		     const struct iovec *pieces, unsigned int count, unsigned int segment);

#endif
