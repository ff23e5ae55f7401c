/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Connections with processes of this host that ended while there was no broker: nobody has sent
 * their last messages.  After each change of the broker the manager checks a few times whether the
 * slots of its peers still belong to a process.
 */
#ifndef UROCE_UCM_ORPHAN_H
#define UROCE_UCM_ORPHAN_H

#include <stdint.h>

/* All with the lock of manager.h held. */
void ucm_orphans_begin(uint64_t now);
/* When ucm_orphans_run() has something to do, or UINT64_MAX. */
uint64_t ucm_orphans_next(void);
/* Ends the connections whose peer is gone as its DREQ would. */
void ucm_orphans_run(uint64_t now);

#endif
