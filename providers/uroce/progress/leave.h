/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What queue pairs owe to their peers when the process ends: an adapter would still send these
 * ACKs, and the peer waits for them.
 *
 * It may end in a signal handler's exit(), which has interrupted anything, with any lock held by
 * the very thread that calls exit().  So that thread only looks, and waits for no lock; the helper
 * thread sends.
 */
#ifndef UROCE_PROGRESS_LEAVE_H
#define UROCE_PROGRESS_LEAVE_H

#include "instance.h"

/* Let the helper send what is owed, if anything is. */
void leave_begin(struct progress *progress);
/* Wait until it has done so, but no longer than until (progress_now()). */
void leave_await(struct progress *progress, uint64_t until);
/* The helper's part, when progress->helper.leaves. */
void leave_send(struct progress *progress);

#endif
