/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * One worker is made and unmade; progress.c has the workers of the process.
 */
#ifndef UROCE_PROGRESS_WORKER_H
#define UROCE_PROGRESS_WORKER_H

#include "instance.h"

/*
 * Claim a slot and start the helper thread.  0 or a negative errno, with one line for the user in
 * error.
 */
int worker_open(struct progress **opened, unsigned int number, const struct progress_hooks *hooks,
		char error[PROGRESS_ERROR_TEXT]);
/* No queue pair may be left in it. */
void worker_close(struct progress *progress);

#endif
