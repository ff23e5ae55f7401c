/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Creates and destroys one worker; progress.c has the workers of the process. */
#ifndef UROCE_PROGRESS_WORKER_H
#define UROCE_PROGRESS_WORKER_H

#include "instance.h"

/*
 * Claims a slot and starts the progress thread.  Returns 0 or a negative errno, with one line for
 * the user in error.
 */
int worker_open(struct progress **opened, unsigned int number, const struct progress_hooks *hooks,
		char error[PROGRESS_ERROR_TEXT]);
/* No QP may be left in it. */
void worker_close(struct progress *progress);

#endif
