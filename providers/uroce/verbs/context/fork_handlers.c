/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "verbs/fork.h"

#include <pthread.h>

#include "capture/capture.h"
#include "verbs/stats/stats.h"
#include "verbs/context_objects.h"
#include "verbs/cq/deferred_qp_work.h"
#include "context.h"
#include "device.h"
#include "verbs/mr/import.h"
#include "verbs/mr/mkey_table.h"
#include "verbs/qp/ud.h"
#include "verbs/xrc/xrc.h"

/*
 * One registration for verbs and all layers below, because the order of handlers that are
 * registered separately depends on the order of registration.  ucm, whose lock is outer to all of
 * these, registers later, and so its handler runs before (ucm/ucm_core.c).  A row is needed for a
 * part whose data the child continues to use, or whose descriptors it must find; the other locks
 * are initialised again in the child.
 *
 * The rows are in the order of locks (Documentation/locks.md), outermost first.  A lock held while
 * waiting for a callback of the progress thread is outer to the locks that the callback takes; so
 * interface notification comes first.
 */
static const struct {
	void (*prepare)(void), (*parent)(void), (*child)(void);
} fork_handlers[] = {
	{ uroce_netdev_events_fork_prepare, uroce_netdev_events_fork_parent,
	  uroce_netdev_events_fork_child },
	{ uroce_stats_fork_prepare, uroce_stats_fork_parent, uroce_stats_fork_child },
	{ uroce_qp_work_fork_prepare, uroce_qp_work_fork_parent, uroce_qp_work_fork_child },
	{ uroce_devices_fork_prepare, uroce_devices_fork_parent, uroce_devices_fork_child },
	{ uroce_xrc_fork_prepare, uroce_xrc_fork_parent, uroce_xrc_fork_child },
	{ uroce_import_fork_prepare, uroce_import_fork_done, uroce_import_fork_done },
	{ uroce_ctx_objs_fork_prepare, uroce_ctx_objs_fork_parent, uroce_ctx_objs_fork_child },
	{ progress_fork_prepare, progress_fork_parent, progress_fork_child },
	{ mkey_table_fork_prepare, mkey_table_fork_parent, mkey_table_fork_child },
	{ capture_fork_prepare, capture_fork_parent, capture_fork_child },
};

enum {
	FORK_HANDLERS = sizeof(fork_handlers) / sizeof(fork_handlers[0]),
};

static void prepare_fork(void)
{
	for (int i = 0; i < FORK_HANDLERS; i++)
		fork_handlers[i].prepare();
}

static void finish_fork_in_parent(void)
{
	for (int i = FORK_HANDLERS; i-- > 0;)
		fork_handlers[i].parent();
}

static void finish_fork_in_child(void)
{
	uroce_generation++;
	for (int i = FORK_HANDLERS; i-- > 0;)
		fork_handlers[i].child();
	uroce_context_close_fork_child();
	uroce_channel_fork_child();
	uroce_ud_fork_child();
	uroce_mcast_fork_child();
}

static int install_error;

/* Runs before any lock or descriptor exists. */
__attribute__((constructor)) static void install_fork_handlers(void)
{
	install_error = pthread_atfork(prepare_fork, finish_fork_in_parent, finish_fork_in_child);
}

int uroce_fork_init(void)
{
	return install_error;
}
