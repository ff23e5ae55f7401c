/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Internal interface of contexts: opening and closing, the queue of asynchronous events,
 * notification of interface changes.
 */
#ifndef UROCE_VERBS_CONTEXT_CONTEXT_H
#define UROCE_VERBS_CONTEXT_CONTEXT_H

#include "verbs/uroce.h"

/*
 * The alloc_context operation of verbs_device_ops, for a context with these operations; returns a
 * verbs_context, or NULL with errno and a message on stderr.  private_data points to the cmd_fd of
 * an import, which the context then owns, or is NULL.
 */
void *uroce_alloc_context(struct ibv_device *device, const struct abi_ops *ops, void *private_data);

/*
 * Implements ibv_import_device(): opens another context of the device to which cmd_fd, a duplicate,
 * refers; on success the context owns cmd_fd.  Returns NULL with errno EBADF, or EOPNOTSUPP if no
 * context of this process has that file: objects of other processes cannot be shared.
 */
struct ibv_context *uroce_import_device(int cmd_fd);

/*
 * Starts what opening a context starts (progress, interface notification, the server for
 * uroce-stat) and reads the settings, for users without a context.  Returns 0, or a negative errno
 * with one line in error.
 */
int uroce_provider_start(struct progress **progress, struct uroce_settings *settings,
			 char error[PROGRESS_ERROR_TEXT]);
void uroce_provider_stop(struct progress *progress);

/*
 * Called when context has been closed and removed from the list of open contexts.  If no other
 * context has its file open, stops the objects of all contexts of the file and drops their
 * references to progress.
 */
void uroce_context_close(struct uroce_context *context);

/* Opens the pipe of asynchronous events (returns 0 or a positive errno), and closes both ends. */
int uroce_async_open(struct uroce_context *context);
void uroce_async_close(struct uroce_context *context);

/*
 * Counted; while any user is left, interface changes are reported to open contexts as they happen.
 * If that fails (message on stderr), changes are noticed only when a device list is requested.
 */
void uroce_netdev_events_get(struct progress *progress);
void uroce_netdev_events_put(struct progress *progress);
/*
 * Sets the function that is called when addresses have been added or removed, in a work thread,
 * without locks.  There is one, for the rest of the process.
 */
void uroce_set_address_hook(void (*hook)(void));

#endif
