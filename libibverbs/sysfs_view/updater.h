/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The process that updates the tree while the program runs.  It is a child of the program without
 * an exit signal, so the program's wait() does not return it.
 */
#ifndef UROCE_VIEW_UPDATER_H
#define UROCE_VIEW_UPDATER_H

#include <stddef.h>

#include "tree.h"

/*
 * Starts the process; it exits when the calling process does, and then removes the directory dir
 * unless that is NULL.  Returns 0 or a negative errno.
 */
int updater_start(struct tree *tree, const char *dir);

/* Kills and reaps the process.  May only be called in the process that has started it. */
void updater_stop(void);

/*
 * Closes all fds except the count ones in keep, opens /dev/null as 0 to 2 and changes the working
 * directory to /, so that this process does not keep the program's files and mounts in use.
 * Returns 0 or -1.
 */
int updater_detach(const int *keep, size_t count);

#endif
