/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The process that keeps the tree current while the program runs: a child of the program that the
 * program's wait() does not see, since it tells of its end by no signal.
 */
#ifndef UROCE_VIEW_KEEPER_H
#define UROCE_VIEW_KEEPER_H

#include <stddef.h>

#include "tree.h"

/*
 * Start it; it ends when this process does.  folder: what is to be taken away then, or NULL.
 * 0 or a negative errno.
 */
int keeper_start(struct tree *tree, const char *folder);

/* End it now and reap it; only in the process that has started it. */
void keeper_stop(void);

/*
 * Close all descriptors except count kept ones, and leave the working directory: a process that
 * only accompanies the program must not hold open what the program has.  0 or -1.
 */
int keeper_let_go(const int *keep, size_t count);

#endif
