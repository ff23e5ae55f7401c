/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "fork.h"

#include <pthread.h>

#include "capture/capture.h"
#include "progress/progress.h"

unsigned int uroce_generation = 1;

/*
 * One registration for verbs and all layers below, because the order of handlers that are
 * registered separately depends on the order of registration.  ucm, whose lock is outer to all of
 * these, registers later, and so its handler runs before (ucm/handlers.c).  The locks of parts
 * without a row are initialised again in the child.
 */
static struct uroce_fork_ops parts[UROCE_FORK_PARTS] = {
	[UROCE_FORK_PROGRESS] = { progress_fork_prepare, progress_fork_parent,
				  progress_fork_child },
	[UROCE_FORK_CAPTURE] = { capture_fork_prepare, capture_fork_parent, capture_fork_child },
};

void uroce_fork_register(enum uroce_fork_part part, struct uroce_fork_ops ops)
{
	parts[part] = ops;
}

static void prepare_fork(void)
{
	for (int i = 0; i < UROCE_FORK_PARTS; i++)
		if (parts[i].prepare)
			parts[i].prepare();
}

static void finish_fork_in_parent(void)
{
	for (int i = UROCE_FORK_PARTS; i-- > 0;)
		if (parts[i].parent)
			parts[i].parent();
}

static void finish_fork_in_child(void)
{
	uroce_generation++;
	for (int i = UROCE_FORK_PARTS; i-- > 0;)
		if (parts[i].child)
			parts[i].child();
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
