/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "verbs/belongings.h"

#include "verbs/context.h"
#include "verbs/device.h"
#include "verbs/qp/ud.h"

/* Around the end of a file's objects; held while locks of all kinds are taken. */
static pthread_mutex_t closing_lock = PTHREAD_MUTEX_INITIALIZER;
/* Closed contexts whose file another one has open, by next_closed; under closing_lock. */
static struct uroce_context *closed;

/* Of the process, since imports share objects; innermost. */
static pthread_mutex_t lists_lock = PTHREAD_MUTEX_INITIALIZER;
static struct uroce_belonging *lists[BELONGING_KINDS];

void uroce_context_hold(struct ibv_context *context)
{
	if (context)
		atomic_fetch_add(&to_uroce_context(context)->holders, 1);
}

void uroce_context_release(struct ibv_context *public)
{
	struct uroce_context *context;

	if (!public)
		return;
	context = to_uroce_context(public);
	/* An open context holds itself. */
	if (atomic_fetch_sub(&context->holders, 1) == 1 && context->closed)
		uroce_context_free(context);
}

void uroce_belongings_enter(struct uroce_belonging *belonging, enum belonging_kind kind,
			    struct uroce_context *context,
			    void (*end)(struct uroce_belonging *belonging))
{
	belonging->context = context;
	belonging->end = end;
	pthread_mutex_lock(&lists_lock);
	belonging->next = lists[kind];
	belonging->link = &lists[kind];
	if (belonging->next)
		belonging->next->link = &belonging->next;
	lists[kind] = belonging;
	pthread_mutex_unlock(&lists_lock);
}

/* Caller holds lists_lock. */
static void unlink_belonging(struct uroce_belonging *belonging)
{
	*belonging->link = belonging->next;
	if (belonging->next)
		belonging->next->link = belonging->link;
	belonging->link = NULL;
}

void uroce_belongings_leave(struct uroce_belonging *belonging)
{
	pthread_mutex_lock(&lists_lock);
	if (belonging->link)
		unlink_belonging(belonging);
	pthread_mutex_unlock(&lists_lock);
}

static struct uroce_belonging *take(enum belonging_kind kind, struct uroce_context *context)
{
	struct uroce_belonging *belonging;

	pthread_mutex_lock(&lists_lock);
	belonging = lists[kind];
	while (belonging &&
	       !uroce_together(&belonging->context->base.context, &context->base.context))
		belonging = belonging->next;
	if (belonging)
		unlink_belonging(belonging);
	pthread_mutex_unlock(&lists_lock);
	return belonging;
}

/* Caller holds closing_lock. */
static void end_all(struct uroce_context *context)
{
	for (enum belonging_kind kind = 0; kind < BELONGING_KINDS; kind++) {
		struct uroce_belonging *belonging;

		/* Outside of the lock: the end of an object waits for turns and callbacks. */
		while ((belonging = take(kind, context)))
			belonging->end(belonging);
	}
}

/* The contexts of context's file, itself included, need no progress any more. */
static void put_all(struct uroce_context *context)
{
	struct uroce_context **from = &closed;

	while (*from) {
		struct uroce_context *other = *from;

		if (!uroce_together(&other->base.context, &context->base.context)) {
			from = &other->next_closed;
			continue;
		}
		*from = other->next_closed;
		uroce_ud_close(other);
		progress_put(other->progress);
		other->progress = NULL;
		uroce_context_release(&other->base.context);
	}
}

void uroce_belongings_close(struct uroce_context *context)
{
	pthread_mutex_lock(&closing_lock);
	/* Held, so that what has been closed before can be found. */
	uroce_context_hold(&context->base.context);
	context->next_closed = closed;
	closed = context;
	if (!context->file || !uroce_devices_of_file(context->file)) {
		end_all(context);
		put_all(context);
	}
	pthread_mutex_unlock(&closing_lock);
}

void uroce_belongings_fork_prepare(void)
{
	pthread_mutex_lock(&lists_lock);
}

void uroce_belongings_fork_parent(void)
{
	pthread_mutex_unlock(&lists_lock);
}

void uroce_belongings_fork_child(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	closing_lock = fresh;
	/* They are the parent's to end. */
	closed = NULL;
	for (int i = 0; i < BELONGING_KINDS; i++)
		while (lists[i])
			unlink_belonging(lists[i]);
	pthread_mutex_unlock(&lists_lock);
}
