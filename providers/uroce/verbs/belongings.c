/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "belongings.h"

#include <stdlib.h>

#include "uroce.h"

/* One lock for the process, because imported contexts share objects.  Innermost lock. */
static pthread_mutex_t lists_lock = PTHREAD_MUTEX_INITIALIZER;
static struct uroce_belonging *object_lists[BELONGING_KINDS];

bool uroce_together(struct ibv_context *one, struct ibv_context *other)
{
	uint64_t file;

	if (one == other)
		return true;
	file = to_uroce_context(one)->file;
	return file && file == to_uroce_context(other)->file;
}

/* Frees a closed context to which no object points any more. */
static void free_context(struct uroce_context *context)
{
	pthread_mutex_destroy(&context->async_lock);
	uroce_abi.uninit_context(abi_verbs_context(&context->base));
	free(context);
}

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
	/* An open context has a reference to itself. */
	if (atomic_fetch_sub(&context->holders, 1) == 1 && context->closed)
		free_context(context);
}

void uroce_belongings_enter(struct uroce_belonging *belonging, enum belonging_kind kind,
			    struct uroce_context *context,
			    void (*end)(struct uroce_belonging *belonging))
{
	belonging->context = context;
	belonging->end = end;
	pthread_mutex_lock(&lists_lock);
	belonging->next = object_lists[kind];
	belonging->link = &object_lists[kind];
	if (belonging->next)
		belonging->next->link = &belonging->next;
	object_lists[kind] = belonging;
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

static struct uroce_belonging *take_object(enum belonging_kind kind, struct uroce_context *context)
{
	struct uroce_belonging *belonging;

	pthread_mutex_lock(&lists_lock);
	belonging = object_lists[kind];
	while (belonging &&
	       !uroce_together(&belonging->context->base.context, &context->base.context))
		belonging = belonging->next;
	if (belonging)
		unlink_belonging(belonging);
	pthread_mutex_unlock(&lists_lock);
	return belonging;
}

void uroce_belongings_end(struct uroce_context *context)
{
	for (enum belonging_kind kind = 0; kind < BELONGING_KINDS; kind++) {
		struct uroce_belonging *belonging;

		/* Without lists_lock, because end() waits for progress cycles and callbacks. */
		while ((belonging = take_object(kind, context)))
			belonging->end(belonging);
	}
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
	/* The objects belong to the parent, which stops them. */
	for (int i = 0; i < BELONGING_KINDS; i++)
		while (object_lists[i])
			unlink_belonging(object_lists[i]);
	pthread_mutex_unlock(&lists_lock);
}
