/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Containers often have a process 1 that reaps only its own children.  The keeper outlives the
 * program, so there it would stay a zombie after each run.  Then the program runs as a child of a
 * supervisor, which reaps both.  Elsewhere the program keeps the process that was started.
 */
#ifndef UROCE_VIEW_SUPERVISOR_H
#define UROCE_VIEW_SUPERVISOR_H

#include <stdbool.h>

/* Returns true if process 1 pays no attention to SIGCHLD. */
bool supervisor_needed(void);

/*
 * Returns in a child, which becomes the program.  This process hands signals on to it, stops the
 * keeper after it, and ends as it did.  Without memory for a child it returns as well.
 */
void supervise(void);

#endif
