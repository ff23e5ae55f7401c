/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The counters of the devices: what the uroce processes of this user tell (as uroce-stat shows it),
 * summed up by device.  What a process had counted is kept when it ends.
 */
#ifndef UROCE_VIEW_COUNTERS_H
#define UROCE_VIEW_COUNTERS_H

#include "tree.h"

/* Visit all names: group is "counters" (the kernel's names) or "hw_counters" (the provider's). */
void counters_each(void (*visit)(void *arg, const char *group, const char *name), void *arg);

/* Ask all processes and write the files of all devices. */
void counters_update(struct tree *tree);

#endif
