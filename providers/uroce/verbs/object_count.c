/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "object_count.h"

#include <errno.h>

#include "uroce.h"

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
