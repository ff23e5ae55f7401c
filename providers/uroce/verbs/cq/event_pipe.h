/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Pipe of records of equal size, whose read end the application reads, in blocking or non-blocking
 * mode, or polls.  Unread records can be removed.  The owner serialises all calls on one pipe.
 */
#ifndef UROCE_VERBS_EVENT_PIPE_H
#define UROCE_VERBS_EVENT_PIPE_H

#include <stdbool.h>
#include <stddef.h>

#define EVENT_PIPE_MAX_RECORD 16

/* Creates a pipe; the caller owns both fds.  Returns 0 or a positive errno. */
int event_pipe_open(int *read_fd, int *write_fd);

/* Writes a record without blocking; enlarges a full pipe.  Returns 0, ENOBUFS if full, or errno. */
int event_pipe_push(int write_fd, const void *record, size_t bytes);

/* Removes the unread records for which match() returns true. */
void event_pipe_purge(int read_fd, int write_fd, size_t bytes,
		      bool (*match)(const void *record, const void *arg), const void *arg);

#endif
