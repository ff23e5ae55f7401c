/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A queue of records of one size for the application, which reads them from a descriptor in
 * blocking or non-blocking mode, or polls it.  Records can be taken back as long as they are
 * unread.  The owner serialises all calls on one pipe.
 */
#ifndef UROCE_VERBS_EVENT_PIPE_H
#define UROCE_VERBS_EVENT_PIPE_H

#include <stdbool.h>
#include <stddef.h>

#define EVENT_PIPE_MAX_RECORD 16

/* 0 or a positive errno. */
int event_pipe_open(int *read_fd, int *write_fd);

/* Never blocks; makes the pipe larger when it is full.  0 or a positive errno. */
int event_pipe_push(int write_fd, const void *record, size_t bytes);

/* Take back the records that match says so for. */
void event_pipe_purge(int read_fd, int write_fd, size_t bytes,
		      bool (*match)(const void *record, const void *arg), const void *arg);

#endif
