/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Stops the objects of contexts when the last context of their file is closed. */
#include "verbs/context_objects.h"
#include "context.h"
#include "device.h"
#include "verbs/fork.h"
#include "verbs/qp/ud.h"

/* Serialises closing.  Outer to the locks that stopping objects takes. */
static pthread_mutex_t closing_lock = PTHREAD_MUTEX_INITIALIZER;
/* Closed contexts whose file another context has open, by next_closed; under closing_lock. */
static struct uroce_context *closed_contexts;

/* Drops the references to progress of all closed contexts that share the file of context. */
static void put_progress_of_file(struct uroce_context *context)
{
	struct uroce_context **from = &closed_contexts;

	while (*from) {
		struct uroce_context *other = *from;

		if (!uroce_contexts_share_file(&other->base.context, &context->base.context)) {
			from = &other->next_closed;
			continue;
		}
		*from = other->next_closed;
		uroce_ud_close(other);
		uroce_objects_uncount_all(other);
		progress_put(other->progress);
		other->progress = NULL;
		uroce_context_release(&other->base.context);
	}
}

void uroce_context_close(struct uroce_context *context)
{
	pthread_mutex_lock(&closing_lock);
	/* Referenced until the last context of the file is closed. */
	uroce_context_hold(&context->base.context);
	context->next_closed = closed_contexts;
	closed_contexts = context;
	if (!context->file || !uroce_devices_find_by_file(context->file_system, context->file)) {
		uroce_ctx_objs_stop(context);
		put_progress_of_file(context);
	}
	pthread_mutex_unlock(&closing_lock);
}

static void finish_fork_in_child(void)
{
	static const pthread_mutex_t initial_lock = PTHREAD_MUTEX_INITIALIZER;

	closing_lock = initial_lock;
	/* The objects belong to the parent, which stops them. */
	closed_contexts = NULL;
}

UROCE_FORK_HANDLERS(UROCE_FORK_CONTEXT_CLOSE, .child = finish_fork_in_child)
