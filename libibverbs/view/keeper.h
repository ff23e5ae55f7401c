/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The process that keeps the tree current while the program runs: a child of the program that the
 * program's wait() does not see, since it tells of its end by no signal.
 */
#ifndef UROCE_VIEW_KEEPER_H
#define UROCE_VIEW_KEEPER_H

#include "tree.h"

/*
 * Start it; it ends when this process does.  folder: what is to be taken away then, or NULL.
 * 0 or a negative errno.
 */
int keeper_start(struct tree *tree, const char *folder);

#endif
