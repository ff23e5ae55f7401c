/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A capture that uroce-stat asks for: it lasts as long as the connection, and goes into the
 * descriptor that comes over it, so that this process opens no file for another one.
 */
#ifndef UROCE_VERBS_STAT_CAPTURE_H
#define UROCE_VERBS_STAT_CAPTURE_H

#include "progress/progress.h"

/* A process of this user asks, on a connection that is handed over.  In the helper thread. */
void stat_capture_asked(struct progress *progress, int client);
/* No more questions come: end the capture, if there is one.  May wait for the file. */
void stat_capture_end(struct progress *progress);
/* In a forked child: the connection is the parent's. */
void stat_capture_forked(void);

#endif
