/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The view by mounts: this process enters a new mount namespace, together with a new user namespace
 * if it lacks CAP_SYS_ADMIN.  In it /sys/class and /dev are replaced by directories that bind all
 * original entries except those of RDMA devices.
 */
#ifndef UROCE_VIEW_MOUNTS_H
#define UROCE_VIEW_MOUNTS_H

#include "tree.h"

/*
 * Enters the namespaces and mounts a tmpfs for the tree; sets the fds in tree, those of the covered
 * directories included.  This is tried first in a child process, so that a failure has no effect on
 * the caller.  Returns 0, or a negative errno and the name of the failed step in *step.
 */
int mounts_enter(struct tree *tree, const char **step);

/* Mounts the tree where programs look for it.  To be called after the first tree_update(). */
int mounts_show(const struct tree *tree, const char **step);

#endif
