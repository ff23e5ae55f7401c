/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The sysfs directories of one device, with the file names and contents of the kernel's infiniband
 * core.
 */
#ifndef UROCE_VIEW_SYSFS_H
#define UROCE_VIEW_SYSFS_H

#include "verbs/abi/dropin_ops.h"

/*
 * Writes the files of the device below BASE/infiniband/NAME and BASE/infiniband_verbs/NAME.
 * Counter files are created with value 0 unless they exist.  Returns 0 or a negative errno.
 */
int sysfs_device(int root, const char *base, const char *name,
		 const struct uroce_device_desc *desc);

/*
 * Returns the path of the character device that represents uroce devices in /dev/infiniband; no
 * program should write to it.
 */
const char *sysfs_device_node(void);

#endif
