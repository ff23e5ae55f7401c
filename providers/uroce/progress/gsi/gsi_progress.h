/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Interface of queue pair 1 to the rest of this directory: the receive demultiplexer passes it
 * packets, the progress thread calls its watch, and fork() locks and resets it.
 */
#ifndef UROCE_PROGRESS_GSI_GSI_PROGRESS_H
#define UROCE_PROGRESS_GSI_GSI_PROGRESS_H

#include "progress/progress_priv.h"

struct wire_packet;

/*
 * Receives a packet for queue pair 1 that has passed all checks of the receive demultiplexer and
 * gsi_packet_check().  Caller runs the cycle, and progress->gsi is not NULL.
 */
void gsi_rx(struct progress *progress, const struct wire_packet *packet,
	    const struct link_batch *batch, uint64_t now);

/*
 * Returns true if queue pair 1 is in use and has work that no descriptor reports: the caller must
 * then call the watch of gsi_wakeup.fd.
 */
static inline bool gsi_has_work(const struct progress *progress)
{
	return atomic_load_explicit(&progress->gsi_wakeup.pending, memory_order_acquire) &&
	       atomic_load_explicit(&progress->gsi_wakeup.fd, memory_order_acquire) >= 0;
}

static inline uint64_t gsi_next_deadline(const struct progress *progress)
{
	return atomic_load_explicit(&progress->gsi_wakeup.deadline, memory_order_seq_cst);
}

/* Called by progress_fork_prepare(), progress_fork_parent() and progress_fork_child(). */
void gsi_fork_prepare(void);
void gsi_fork_parent(void);
void gsi_fork_child(void);

#endif
