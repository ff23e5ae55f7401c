/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The view by mounts: this process gets a mount namespace of its own, with a user namespace of its
 * own where it has no right to the first alone, and in it /sys/class and /dev of which all is as
 * it was but for what is about RDMA devices.
 */
#ifndef UROCE_VIEW_MOUNTS_H
#define UROCE_VIEW_MOUNTS_H

#include "tree.h"

/*
 * Enter the namespaces; tree becomes a file system of its own, with the descriptors of what it
 * covers.  It is tried first in another process, so nothing has happened where it is refused.
 * 0, or a negative errno and in *step what failed.
 */
int mounts_enter(struct tree *tree, const char **step);

/* Put the tree, when its first update is made, where programs look for it. */
int mounts_show(const struct tree *tree, const char **step);

#endif
