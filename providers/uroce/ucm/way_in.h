/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Functions that replace the system calls of librdmacm; registered with the drop-in by a
 * constructor.
 */
#ifndef UROCE_UCM_WAY_IN_H
#define UROCE_UCM_WAY_IN_H

#include "verbs/way_in.h"

extern const struct uroce_channels ucm_channels;

#endif
