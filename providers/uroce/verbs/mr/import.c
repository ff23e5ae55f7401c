/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "import.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

#include "verbs/fork.h"
#include "verbs/uroce.h"

static pthread_mutex_t objects_lock = PTHREAD_MUTEX_INITIALIZER;
/* Hash table, by handle, of the objects that have not been destroyed. */
#define BUCKETS 4096
static LIST_HEAD(importables, uroce_importable) objects[BUCKETS];
static uint32_t last_handle;

static struct importables *bucket_of(uint32_t handle)
{
	return &objects[handle % BUCKETS];
}

void uroce_import_add(struct uroce_importable *object, enum import_kind kind,
		      const struct uroce_context *context)
{
	pthread_mutex_lock(&objects_lock);
	object->kind = kind;
	object->handle = ++last_handle;
	object->file = context ? context->file : 0;
	object->refs = 1;
	object->destroyed = false;
	LIST_INSERT_HEAD(bucket_of(object->handle), object, link);
	pthread_mutex_unlock(&objects_lock);
}

static struct uroce_importable *find_and_hold(enum import_kind kind,
					      const struct uroce_context *context, uint32_t handle)
{
	struct uroce_importable *object;

	if (!context->file)
		return NULL;
	pthread_mutex_lock(&objects_lock);
	LIST_FOREACH(object, bucket_of(handle), link)
		if (object->kind == kind && object->handle == handle &&
		    object->file == context->file)
			break;
	if (object)
		object->refs++;
	pthread_mutex_unlock(&objects_lock);
	return object;
}

void *uroce_import_create(enum import_kind kind, struct ibv_context *context, uint32_t handle,
			  size_t bytes, struct uroce_importable **object)
{
	void *import = calloc(1, bytes);

	if (!import) {
		errno = ENOMEM;
		return NULL;
	}
	*object = find_and_hold(kind, to_uroce_context(context), handle);
	if (!*object) {
		free(import);
		errno = ENOENT;
		return NULL;
	}
	uroce_context_hold(context);
	return import;
}

bool uroce_import_destroy(struct uroce_importable *object)
{
	bool first;

	pthread_mutex_lock(&objects_lock);
	first = !object->destroyed;
	if (first)
		LIST_REMOVE(object, link);
	object->destroyed = true;
	pthread_mutex_unlock(&objects_lock);
	return first;
}

bool uroce_import_is_destroyed(struct uroce_importable *object)
{
	bool destroyed;

	pthread_mutex_lock(&objects_lock);
	destroyed = object->destroyed;
	pthread_mutex_unlock(&objects_lock);
	return destroyed;
}

void uroce_import_hold(struct uroce_importable *object)
{
	pthread_mutex_lock(&objects_lock);
	object->refs++;
	pthread_mutex_unlock(&objects_lock);
}

bool uroce_import_put(struct uroce_importable *object)
{
	bool last;

	pthread_mutex_lock(&objects_lock);
	last = --object->refs == 0 && object->destroyed;
	pthread_mutex_unlock(&objects_lock);
	return last;
}

static void prepare_fork(void)
{
	pthread_mutex_lock(&objects_lock);
}

static void finish_fork(void)
{
	pthread_mutex_unlock(&objects_lock);
}

UROCE_FORK_HANDLERS(UROCE_FORK_IMPORTS, prepare_fork, finish_fork, finish_fork)
