/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Sends pending ACKs at process exit: an adapter would still send them, and the peer waits for
 * them.
 *
 * The process may end by exit() in a signal handler, which may have interrupted a thread that holds
 * any lock.  So the exiting thread only checks, and waits for no lock; the progress thread sends.
 */
#ifndef UROCE_PROGRESS_LEAVE_H
#define UROCE_PROGRESS_LEAVE_H

#include "instance.h"

/* Makes the progress thread send the pending ACKs, if there are any. */
void leave_begin(struct progress *progress);
/* Waits until they have been sent, at the latest until (progress_now()). */
void leave_await(struct progress *progress, uint64_t until);
/* Called by the progress thread if progress->helper.exit_requested is set. */
void leave_send(struct progress *progress);

#endif
