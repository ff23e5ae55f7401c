/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What the rest of this folder does for queue pair 1: the rx demux hands in what has come, the
 * helper thread looks after it, fork() lets it be.
 */
#ifndef UROCE_PROGRESS_GSI_SERVICE_H
#define UROCE_PROGRESS_GSI_SERVICE_H

#include "instance.h"

struct wire_packet;

/*
 * A packet for queue pair 1 that has passed all checks of the rx demux and gsi_packet_check().
 * Caller makes the turn, and progress->gsi is not NULL.
 */
void gsi_admit(struct progress *progress, const struct wire_packet *packet,
	       const struct link_batch *batch, uint64_t now);

/*
 * Returns true if queue pair 1 is used and has something to do that no descriptor shows: then call
 * the watch of gsi_wakeup.fd.
 */
static inline bool gsi_has_work(const struct progress *progress)
{
	return atomic_load_explicit(&progress->gsi_wakeup.work, memory_order_acquire) &&
	       atomic_load_explicit(&progress->gsi_wakeup.fd, memory_order_acquire) >= 0;
}

static inline uint64_t gsi_next_deadline(const struct progress *progress)
{
	return atomic_load_explicit(&progress->gsi_wakeup.deadline, memory_order_seq_cst);
}

/* As progress_fork_*(). */
void gsi_fork_prepare(void);
void gsi_fork_parent(void);
void gsi_fork_child(void);

#endif
