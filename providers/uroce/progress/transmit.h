/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * From the engine of one QP to the link.  Callers hold qp->lock; those of the first group are
 * inside the hooks as well.
 */
#ifndef UROCE_PROGRESS_TRANSMIT_H
#define UROCE_PROGRESS_TRANSMIT_H

#include "instance.h"

/* So many runs of one QP and side leave in one visit; then others have their turn. */
#define TRANSMIT_RUNS 8
/* The same for a QP that has waited in the crowd. */
#define TRANSMIT_RUNS_CROWDED 2

enum transmit_end {
	TRANSMIT_DONE,	  /* the engine has nothing more that may be sent */
	TRANSMIT_MORE,	  /* it has, but the visit has been long enough */
	TRANSMIT_BLOCKED, /* the socket is full */
	TRANSMIT_CROWDED, /* all QPs together have enough under way */
};

/*
 * Send what the engine has for sides: ENG_REQUESTS, ENG_RESPONSES, or both, which sends requests
 * and takes the ACK along that is owed, but no other responses.  At most max_runs of them.  tx may
 * be NULL: then one is taken from the stock; when that is empty, nothing is sent and the end is
 * TRANSMIT_BLOCKED, so that the next turn, which has a buffer of its own, sends it.
 */
enum transmit_end transmit(struct progress *progress, struct progress_qp *qp, unsigned int sides,
			   unsigned int max_runs, struct tx_buffer *tx, uint64_t now);

/* No ACK waits any more. */
static inline void transmit_ack_leaves(struct progress_qp *qp)
{
	qp->ack_due = 0;
	qp->ack_for_answer = false;
	qp->unanswered = 0;
}

/* Queue the engine's next deadline, and that of an ACK that waits. */
void transmit_deadline(struct progress *progress, struct progress_qp *qp);

/* Let the next turn visit qp.  wake: the helper has to be told if nobody polls. */
void transmit_pend(struct progress *progress, struct progress_qp *qp, bool wake);

/* All pending QPs, linked by next_pending, oldest first; each keeps its mark until visited. */
struct progress_qp *transmit_take_pending(struct progress *progress);
/* Take qp out of the pending list; caller holds the turn lock and not qp->lock. */
void transmit_forget(struct progress *progress, struct progress_qp *qp);

static inline bool transmit_is_pending(struct progress *progress)
{
	return atomic_load_explicit(&progress->pending, memory_order_seq_cst);
}

/* How many the stock should have: at most PROGRESS_TX_BUFFERS. */
unsigned int tx_buffers_wanted(void);
struct tx_buffer *tx_buffer_new(void);
void tx_buffer_free(struct tx_buffer *tx);
/* link_send(), counting calls and what fails. */
void transmit_pieces(struct progress *progress, struct link_peer *peer, const struct iovec *pieces,
		     unsigned int count, unsigned int segment);

#endif
