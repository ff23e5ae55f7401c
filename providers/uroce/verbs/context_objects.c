/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "context_objects.h"

#include <stdlib.h>
#include <errno.h>

#include "fork.h"
#include "uroce.h"

/* One lock for the process, because imported contexts share objects.  Innermost lock. */
static pthread_mutex_t lists_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, uroce_ctx_obj) object_lists[UROCE_CTX_OBJ_KINDS];

bool uroce_contexts_share_file(struct ibv_context *one, struct ibv_context *other)
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
		atomic_fetch_add(&to_uroce_context(context)->refs, 1);
}

void uroce_context_release(struct ibv_context *public)
{
	struct uroce_context *context;

	if (!public)
		return;
	context = to_uroce_context(public);
	/* An open context has a reference to itself. */
	if (atomic_fetch_sub(&context->refs, 1) == 1 && context->closed)
		free_context(context);
}

void uroce_ctx_obj_add(struct uroce_ctx_obj *ctx_obj, enum uroce_ctx_obj_kind kind,
		       struct uroce_context *context, void (*stop)(struct uroce_ctx_obj *ctx_obj))
{
	ctx_obj->context = context;
	ctx_obj->stop = stop;
	pthread_mutex_lock(&lists_lock);
	LIST_INSERT_HEAD(&object_lists[kind], ctx_obj, link);
	ctx_obj->listed = true;
	pthread_mutex_unlock(&lists_lock);
}

/* Caller holds lists_lock. */
static void unlink_ctx_obj(struct uroce_ctx_obj *ctx_obj)
{
	LIST_REMOVE(ctx_obj, link);
	ctx_obj->listed = false;
}

void uroce_ctx_obj_del(struct uroce_ctx_obj *ctx_obj)
{
	pthread_mutex_lock(&lists_lock);
	if (ctx_obj->listed)
		unlink_ctx_obj(ctx_obj);
	pthread_mutex_unlock(&lists_lock);
}

static struct uroce_ctx_obj *take_object(enum uroce_ctx_obj_kind kind,
					 struct uroce_context *context)
{
	struct uroce_ctx_obj *ctx_obj;

	pthread_mutex_lock(&lists_lock);
	LIST_FOREACH(ctx_obj, &object_lists[kind], link)
		if (uroce_contexts_share_file(&ctx_obj->context->base.context,
					      &context->base.context))
			break;
	if (ctx_obj)
		unlink_ctx_obj(ctx_obj);
	pthread_mutex_unlock(&lists_lock);
	return ctx_obj;
}

void uroce_ctx_objs_stop(struct uroce_context *context)
{
	for (enum uroce_ctx_obj_kind kind = 0; kind < UROCE_CTX_OBJ_KINDS; kind++) {
		struct uroce_ctx_obj *ctx_obj;

		/* Without lists_lock, because stop() waits for progress cycles and callbacks. */
		while ((ctx_obj = take_object(kind, context)))
			ctx_obj->stop(ctx_obj);
	}
}

static void prepare_fork(void)
{
	pthread_mutex_lock(&lists_lock);
}

static void finish_fork_in_parent(void)
{
	pthread_mutex_unlock(&lists_lock);
}

static void finish_fork_in_child(void)
{
	/* The objects belong to the parent, which stops them. */
	for (int i = 0; i < UROCE_CTX_OBJ_KINDS; i++)
		while (!LIST_EMPTY(&object_lists[i]))
			unlink_ctx_obj(LIST_FIRST(&object_lists[i]));
	pthread_mutex_unlock(&lists_lock);
}

UROCE_FORK_HANDLERS(UROCE_FORK_CTX_OBJS, prepare_fork, finish_fork_in_parent, finish_fork_in_child)

static const unsigned int max_objects[UROCE_OBJECTS] = {
	[UROCE_OBJECT_PD] = UROCE_MAX_PD, [UROCE_OBJECT_MR] = UROCE_MAX_MR,
	[UROCE_OBJECT_MW] = UROCE_MAX_MW, [UROCE_OBJECT_AH] = UROCE_MAX_AH,
	[UROCE_OBJECT_CQ] = UROCE_MAX_CQ, [UROCE_OBJECT_SRQ] = UROCE_MAX_SRQ,
	[UROCE_OBJECT_QP] = UROCE_MAX_QP,
};

int uroce_object_add(struct ibv_context *public, enum uroce_object kind)
{
	struct uroce_context *context;

	if (!public)
		return 0;
	context = to_uroce_context(public);
	if (atomic_fetch_add(&context->device->objects[kind], 1) >= max_objects[kind]) {
		atomic_fetch_sub(&context->device->objects[kind], 1);
		return ENOMEM;
	}
	atomic_fetch_add(&context->objects[kind], 1);
	uroce_context_hold(public);
	return 0;
}

/* Returns false if the objects of context no longer count. */
static bool uncount_object(struct uroce_context *context, enum uroce_object kind)
{
	unsigned int count = atomic_load(&context->objects[kind]);

	while (count) {
		if (atomic_compare_exchange_weak(&context->objects[kind], &count, count - 1))
			return true;
	}
	return false;
}

void uroce_object_remove(struct ibv_context *public, enum uroce_object kind)
{
	struct uroce_context *context;

	if (!public)
		return;
	context = to_uroce_context(public);
	if (uncount_object(context, kind))
		atomic_fetch_sub(&context->device->objects[kind], 1);
	uroce_context_release(public);
}

void uroce_object_move(struct ibv_context *from, struct ibv_context *to, enum uroce_object kind)
{
	if (uncount_object(to_uroce_context(from), kind))
		atomic_fetch_add(&to_uroce_context(to)->objects[kind], 1);
	uroce_context_hold(to);
	uroce_context_release(from);
}

void uroce_objects_uncount_all(struct uroce_context *context)
{
	for (int kind = 0; kind < UROCE_OBJECTS; kind++) {
		unsigned int left = atomic_exchange(&context->objects[kind], 0);

		atomic_fetch_sub(&context->device->objects[kind], left);
	}
}
