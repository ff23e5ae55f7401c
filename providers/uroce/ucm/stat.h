/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Listeners and connections in the snapshot that uroce-stat reads (verbs/device/stat.h). */
#ifndef UROCE_UCM_STAT_H
#define UROCE_UCM_STAT_H

/* Writes this part of a snapshot (uroce_stat_extend()).  Takes ucm_lock(). */
void ucm_stat_write(void *writer);

#endif
