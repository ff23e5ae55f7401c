/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * State shared by the layer: one lock for ids, channels and the protocol of the connection manager
 * (cm/cm.h).  The protocol sends and receives MADs through queue pair 1 (progress/gsi/gsi.h), in
 * whose thread its timers expire.
 *
 * The lock is the outermost one of a thread in a command or in a callback of queue pair 1.
 * Functions of progress and link that wait for another process, or for those callbacks, are called
 * without it.
 */
#ifndef UROCE_UCM_UCM_CORE_H
#define UROCE_UCM_UCM_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "ucm/addr/address.h"
#include "cm/cm.h"
#include "progress/gsi/gsi.h"
#include "verbs/abi/dropin_ops.h"

struct json_writer;

/*
 * Take and release the lock around a command.  Cancellation is disabled in between, as no
 * cancellation point may be reached with the lock held, except in ucm_channel_wait().
 */
void ucm_api_lock(void);
void ucm_api_unlock(void);
/* Returns the cancel state that the thread had before ucm_api_lock() or ucm_disable_cancel(). */
int ucm_saved_cancel_state(void);
void ucm_disable_cancel(void);

void ucm_lock(void);
void ucm_unlock(void);
/*
 * Returns false if the lock cannot be taken in time: a signal handler that calls exit() may have
 * interrupted a command of this thread; or the progress thread holds the lock and is blocked by
 * another lock for the same reason.
 */
bool ucm_lock_with_timeout(unsigned int ms);

/*
 * Starts the connection manager if necessary, and receives MADs at gid (unless NULL) from then on,
 * as long as a device has gid, or an id or a connection is bound to it.  Called without the lock.
 * Returns 0, or a positive errno with a message on stderr.
 */
int ucm_listen_addr(const uint8_t *gid, uint32_t scope_id);
/*
 * Receives MADs at every address of every device, also of those that are added later.  Addresses
 * that fail are retried at each change and by each call.  Called without the lock.  Returns 0 if
 * any address succeeds or there is none yet, else a positive errno.
 */
int ucm_listen_all(void);

/* Return NULL until ucm_listen_addr() has succeeded.  Called with the lock held. */
struct cm *ucm_cm(void);
struct gsi *ucm_gsi(void);
/* Called with both locks held. */
void ucm_set_cm(struct cm *new_cm, struct gsi *new_gsi, bool reports_credits);
/* Converts the path of a MAD to that of queue pair 1. */
void ucm_gsi_path(const struct cm_path *path, struct gsi_path *to);
/* To be called after calls of the cm, which may change its next deadline. */
void ucm_rearm_timer(void);
/* The timer has expired, so that ucm_rearm_timer() sets it again. */
void ucm_timer_expired(void);
/* In a forked child: resets start_lock, and ucm_cm() returns NULL. */
void ucm_core_forked(void);

/* ---- Handlers of the process: handlers.c ---- */

/*
 * Installs the handlers of fork(), exit() and address changes at the first call.  Returns 0 or a
 * positive errno.
 */
int ucm_install_handlers(void);
/*
 * Blocks the calling thread while another thread runs the exit handler, which waits for replies: an
 * error for a channel that is already closed would only change the exit code.  Called with the lock
 * held.
 */
void ucm_block_until_exit(void);

/* ---- Shared with the list of listening addresses ---- */

/*
 * Take and release start_lock, which is held around calls that wait for other processes, and is
 * taken before the lock.  ucm_start_and_lock() also starts the connection manager if necessary;
 * returns 0, or a negative errno with text and without start_lock.
 */
int ucm_start_and_lock(char text[PROGRESS_ERROR_TEXT]);
void ucm_start_lock(void);
void ucm_start_unlock(void);
/* Return the time of the last attempt to send a MAD, and of the last one that failed. */
uint64_t ucm_last_sent(void);
uint64_t ucm_last_unsent(void);
/* Returns the scope id of a local address: its interface if it is link-local, else 0. */
uint32_t ucm_scope_id_of(const uint8_t *gid, uint32_t device);
/* Called in a work thread, without locks, when devices or addresses have changed. */
void ucm_addresses_changed(void);
void ucm_listen_addrs_forked(void);

/* Returns true unless UROCE_CREDITS is off: QPs with their own receive queues report credits. */
bool ucm_reports_credits(void);

/*
 * Functions that a constructor registers: those that replace the system calls of librdmacm with the
 * drop-in, and the statistics of the layer with verbs/stats/stats.h.
 */
extern const struct uroce_cm_dev_ops ucm_channels;

/* Writes listeners and connections to a snapshot (uroce_stats_extend()).  Takes ucm_lock(). */
void ucm_stat_write(struct json_writer *json);

#endif
