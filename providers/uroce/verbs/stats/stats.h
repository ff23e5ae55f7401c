/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Server for uroce-stat: a listening socket of this process (kernel-headers/rdma/uroce-abi.h),
 * served by the progress thread while contexts are open.
 */
#ifndef UROCE_VERBS_STATS_H
#define UROCE_VERBS_STATS_H

#include "json_writer.h"
#include "progress/progress.h"

/*
 * Counted, one for each open context.  A failure is only reported on stderr, since nothing else
 * needs the socket.
 */
void uroce_stats_get(struct progress *progress);
void uroce_stats_put(struct progress *progress);

/*
 * Writes the state of the process as a JSON object to a new memfd.  Returns its descriptor, or a
 * negative number.  The locks of queue pairs are held one at a time, while one is written to
 * memory.
 */
int uroce_stats_snapshot(struct progress *progress);

/*
 * Sets the function that adds members of the layers above to the object.  It is called for each
 * snapshot in the progress thread.
 */
void uroce_stats_extend(void (*more)(struct json_writer *json));

/*
 * Captures requested by uroce-stat.  A capture lasts until the connection is closed, and is written
 * to a descriptor received on it, so that this process opens no file on behalf of another.
 */

/*
 * Handles a request on the connection client of a process of this user, and takes ownership of
 * client.  Called in the progress thread.
 */
void stats_capture_request(struct progress *progress, int client);
/* Ends the capture, if there is one, after the server has stopped.  May wait for the file. */
void stats_capture_end(struct progress *progress);
/* Called in a forked child, which closes the connection of the parent. */
void stats_capture_fork_child(void);

#endif
