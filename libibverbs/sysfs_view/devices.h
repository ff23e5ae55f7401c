/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The devices that the view shows.  They are listed by the provider plug-in in this program's
 * directory, which the programs use as well.
 */
#ifndef UROCE_VIEW_DEVICES_H
#define UROCE_VIEW_DEVICES_H

#include "verbs/abi/dropin_ops.h"

/* Loads the provider.  Returns false after printing the reason to stderr. */
bool devices_load(void);

/*
 * Calls visit() for each device that has been listed since the start and whose netdev still exists,
 * up or down.  Returns false if the devices cannot be listed.
 */
bool devices_each(void (*visit)(const char *name, const struct uroce_device_desc *desc, void *arg),
		  void *arg);

#endif
