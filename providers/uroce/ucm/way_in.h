/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* What the drop-in leads librdmacm's system calls to; made known to it before all else. */
#ifndef UROCE_UCM_WAY_IN_H
#define UROCE_UCM_WAY_IN_H

#include "verbs/way_in.h"

extern const struct uroce_channels ucm_channels;

#endif
