/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The devices that the view shows: the provider's own list, read by the provider that programs
 * will use, from beside this program.
 */
#ifndef UROCE_VIEW_DEVICES_H
#define UROCE_VIEW_DEVICES_H

#include "verbs/way_in.h"

/* Load the provider; false when that fails, which a line on stderr has said. */
bool devices_load(void);

/*
 * Call visit() for each device that has ever been in the list and whose interface still exists, up
 * or not.  false: the interfaces cannot be read.
 */
bool devices_each(void (*visit)(const char *name, const struct uroce_device_facts *facts,
				void *arg),
		  void *arg);

#endif
