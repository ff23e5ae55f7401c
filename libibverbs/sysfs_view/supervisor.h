/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * In containers, process 1 often does not reap orphans.  The updater process outlives the program,
 * so it would remain a zombie after each run.  In that case the program runs as a child of a
 * supervisor, which reaps both.  Otherwise the program is executed in the calling process.
 */
#ifndef UROCE_VIEW_SUPERVISOR_H
#define UROCE_VIEW_SUPERVISOR_H

#include <stdbool.h>

/* Returns true if process 1 neither blocks, ignores nor catches SIGCHLD. */
bool supervisor_needed(void);

/*
 * Forks and returns in the child, which is to execute the program.  The parent forwards signals to
 * it, stops the updater process after it has exited, and exits with the same status or signal.  If
 * fork() fails, returns in the calling process.
 */
void supervisor_fork(void);

#endif
