/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What all of this layer works under, and what it works with: one lock for ids, channels and the
 * connection manager's protocol (cm/cm.h), whose messages go and come by queue pair 1
 * (progress/gsi.h), in whose thread time passes.
 *
 * The lock is the outermost one of a thread that is in a command or in a callback of queue pair 1;
 * functions of progress and link that wait for another process, or for those callbacks, are called
 * without it.
 */
#ifndef UROCE_UCM_MANAGER_H
#define UROCE_UCM_MANAGER_H

#include <stdbool.h>
#include <stdint.h>

#include "address.h"
#include "cm/cm.h"
#include "progress/gsi.h"

/*
 * A command begins and ends: no cancellation point may be met with the lock held, so cancellation
 * is off between these two but for the wait of channel.c.
 */
void ucm_enter(void);
void ucm_leave(void);
/* What the thread's cancel state was before ucm_enter(). */
int ucm_cancel_state(void);

void ucm_lock(void);
void ucm_unlock(void);

/*
 * Without the lock: the manager runs after the first call, and hears MADs to and from gid from then
 * on (NULL: just runs), as long as a device has it, or an id or a connection is bound to it.  0 or
 * a positive errno, and a line on stderr.
 */
int ucm_hear(const uint8_t *gid, uint32_t scope_id);
/*
 * Without the lock: hear every address of every device while it is there, also those that come
 * later.  Those that cannot be heard are tried again with each change, and with each call.  0 if
 * any can, or there is none yet.
 */
int ucm_hear_all(void);

/* NULL until ucm_hear() has succeeded.  With the lock held. */
struct cm *ucm_cm(void);
struct gsi *ucm_gsi(void);
/* The path of a MAD, in the words of queue pair 1. */
void ucm_gsi_path(const struct cm_path *path, struct gsi_path *to);
/* After calls of the cm: its next deadline may be another one. */
void ucm_time_changed(void);

/*
 * While the process ends and waits for answers: an error that a thread of it gets from here, for a
 * channel that is closed already, would only change its exit code.  With the lock held.
 */
void ucm_wait_for_end(void);

/* ---- between manager.c and hearing.c ---- */

/*
 * Around what waits for other processes, and outside of the lock.  The first one also has the
 * manager run: 0, or a negative errno with text, and nothing is locked.
 */
int ucm_start_and_lock(char text[PROGRESS_ERROR_TEXT]);
void ucm_start_lock(void);
void ucm_start_unlock(void);
/* The scope of a local address: of those that are link-local, the interface that has it. */
uint32_t ucm_scope_of(const uint8_t *gid, uint32_t device);
/* In a thread of its own, without locks: devices or their addresses have come or gone. */
void ucm_addresses_changed(void);
void ucm_hearing_forked(void);

/* UROCE_CREDITS is not off: queue pairs with receive queues of their own report credits. */
bool ucm_credits_are_shown(void);

#endif
