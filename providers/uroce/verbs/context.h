/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What the files of the context share: opening and closing, the events' queue, the watch for
 * changes of interfaces.
 */
#ifndef UROCE_VERBS_CONTEXT_H
#define UROCE_VERBS_CONTEXT_H

#include "uroce.h"

/*
 * The operation of verbs_device_ops: a verbs_context, or NULL with errno and a line on stderr.
 * private_data: where the cmd_fd of an import is, which the context will own; or NULL.
 */
void *uroce_alloc_context(struct ibv_device *device, int cmd_fd, void *private_data);

/*
 * ibv_import_device(): another context of the device that cmd_fd, a duplicate, is of.  The context
 * owns it from then on.  NULL with errno EBADF, or EOPNOTSUPP when no context of this process has
 * that file: what is in another process's memory cannot be shared.
 */
struct ibv_context *uroce_import_device(int cmd_fd);

/*
 * For work without a context: what opening one starts (the process's instance, the watch
 * for changes, uroce-stat) and reads.  0, or a negative errno with one line in error.
 */
int uroce_start(struct progress **progress, struct uroce_settings *settings,
		char error[PROGRESS_ERROR_TEXT]);
void uroce_stop(struct progress *progress);

/*
 * Context is closed, and no longer in the list of those that are open.  When it is the last one of
 * its file, its objects are ended, and those of the others, and progress is let go of.
 */
void uroce_context_close(struct uroce_context *context);
/* In a forked child. */
void uroce_closing_forked(void);

/* Open the pipe of asynchronous events, and close both ends.  0 or a positive errno. */
int uroce_async_open(struct uroce_context *context);
void uroce_async_close(struct uroce_context *context);

/*
 * While any context is open, changes of interfaces are told to it.  Counted.  A failure only means
 * that changes are seen later, when a list is asked for.
 */
void uroce_watch_get(struct progress *progress);
void uroce_watch_put(struct progress *progress);
/*
 * hook is called whenever addresses have come or gone, in a thread of its own, without locks.  One
 * hook; until the process ends.
 */
void uroce_on_address_change(void (*hook)(void));
/* For forked.c. */
void uroce_watch_fork_prepare(void);
void uroce_watch_fork_parent(void);
void uroce_watch_fork_child(void);

#endif
