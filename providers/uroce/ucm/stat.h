/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* What uroce-stat sees of listeners and connections; served with the rest (verbs/device/stat.h). */
#ifndef UROCE_UCM_STAT_H
#define UROCE_UCM_STAT_H

/* A part of a snapshot (uroce_stat_extend()).  Takes the lock of manager.h. */
void ucm_stat_write(void *writer);

#endif
