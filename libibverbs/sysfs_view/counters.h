/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Device counters: the sum over this user's uroce processes, as uroce-stat prints them, including
 * processes that have exited since the view started.
 */
#ifndef UROCE_VIEW_COUNTERS_H
#define UROCE_VIEW_COUNTERS_H

#include "tree.h"

/*
 * Calls visit() for each counter.  group is the directory: "counters" (names of the kernel) or
 * "hw_counters" (names of the provider).
 */
void counters_each(void (*visit)(void *arg, const char *group, const char *name), void *arg);

/* Queries all processes and writes the counter files of all devices. */
void counters_update(struct tree *tree);

#endif
