/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What the files of the context share: opening and closing, the events' queue, the watch for
 * changes of interfaces.
 */
#ifndef UROCE_VERBS_CONTEXT_H
#define UROCE_VERBS_CONTEXT_H

#include "uroce.h"

/* The operation of verbs_device_ops: a verbs_context, or NULL with errno and a line on stderr. */
void *uroce_alloc_context(struct ibv_device *device, int cmd_fd, void *private_data);

/* Open the pipe of asynchronous events; libibverbs closes the read end.  0 or a positive errno. */
int uroce_async_open(struct uroce_context *context);
void uroce_async_close(struct uroce_context *context);

/*
 * While any context is open, changes of interfaces are told to it.  Counted.  A failure only means
 * that changes are seen later, when a list is asked for.
 */
void uroce_watch_get(struct progress *progress);
void uroce_watch_put(struct progress *progress);

#endif
