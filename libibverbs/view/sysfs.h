/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What is in the folders of one device: names and contents as the kernel's infiniband core has
 * them.
 */
#ifndef UROCE_VIEW_SYSFS_H
#define UROCE_VIEW_SYSFS_H

#include "verbs/way_in.h"

/*
 * Write all that is known of the device into BASE/infiniband/NAME and BASE/infiniband_verbs/NAME.
 * The counters are made with 0 and left alone when they are there.  0 or a negative errno.
 */
int sysfs_device(int root, const char *base, const char *name,
		 const struct uroce_device_facts *facts);

/* The character device that stands for ours in /dev/infiniband: no program writes to it. */
const char *sysfs_node(void);

#endif
