/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Functions that a constructor registers: those that replace the system calls of librdmacm with the
 * drop-in, and the statistics of the layer with verbs/device/stat.h.
 */
#ifndef UROCE_UCM_DROPIN_H
#define UROCE_UCM_DROPIN_H

#include "verbs/way_in.h"

extern const struct uroce_channels ucm_channels;

/* Writes listeners and connections to a snapshot (uroce_stat_extend()).  Takes ucm_lock(). */
void ucm_stat_write(void *writer);

#endif
