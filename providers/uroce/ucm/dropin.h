/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Functions that a constructor registers: those that replace the system calls of librdmacm with the
 * drop-in, and the statistics of the layer with verbs/stats/stats.h.
 */
#ifndef UROCE_UCM_DROPIN_H
#define UROCE_UCM_DROPIN_H

#include "verbs/abi/dropin_ops.h"

extern const struct uroce_cm_dev_ops ucm_channels;

/* Writes listeners and connections to a snapshot (uroce_stats_extend()).  Takes ucm_lock(). */
void ucm_stat_write(void *writer);

#endif
