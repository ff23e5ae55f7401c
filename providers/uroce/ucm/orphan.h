/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Connections with processes of this host that ended while there was no broker, so that nobody has
 * sent their last messages.  After each change of the broker, checks a few times whether the slots
 * of peers still belong to a process.
 */
#ifndef UROCE_UCM_ORPHAN_H
#define UROCE_UCM_ORPHAN_H

#include <stdint.h>

/* All functions are called with ucm_lock() held. */
void ucm_orphans_begin(uint64_t now);
/* Returns the time at which ucm_orphans_run() must be called, or UINT64_MAX. */
uint64_t ucm_orphans_next(void);
/* Ends the connections whose peer has ended as if the peer had sent a DREQ. */
void ucm_orphans_run(uint64_t now);

#endif
