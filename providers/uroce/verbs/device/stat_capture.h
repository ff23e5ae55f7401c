/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Captures requested by uroce-stat.  A capture lasts until the connection is closed, and is written
 * to a descriptor received on it, so that this process opens no file on behalf of another.
 */
#ifndef UROCE_VERBS_STAT_CAPTURE_H
#define UROCE_VERBS_STAT_CAPTURE_H

#include "progress/progress.h"

/*
 * Handles a request on the connection client of a process of this user, and takes ownership of
 * client.  Called in the progress thread.
 */
void stat_capture_asked(struct progress *progress, int client);
/* Ends the capture, if there is one, after the server has stopped.  May wait for the file. */
void stat_capture_end(struct progress *progress);
/* Called in a forked child, which closes the connection of the parent. */
void stat_capture_forked(void);

#endif
