/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Asynchronous events.  libibverbs reads them from ibv_context.async_fd in the kernel's format,
 * struct ib_uverbs_async_event_desc.
 */
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

#include "event_pipe.h"
#include "verbs/context/context.h"

int uroce_async_open(struct uroce_context *context)
{
	pthread_mutex_init(&context->async_lock, NULL);
	return event_pipe_open(&context->base.context.async_fd, &context->async_write_fd);
}

void uroce_async_close(struct uroce_context *context)
{
	pthread_mutex_lock(&context->async_lock);
	close(context->async_write_fd);
	context->async_write_fd = -1;
	close(context->base.context.async_fd);
	context->base.context.async_fd = -1;
	pthread_mutex_unlock(&context->async_lock);
}

void uroce_async_event(struct uroce_context *context, enum ibv_event_type type, void *element)
{
	struct ib_uverbs_async_event_desc record = {
		.element = (uintptr_t)element,
		.event_type = type,
	};

	pthread_mutex_lock(&context->async_lock);
	/* The event is dropped if 65536 are unread (event_pipe.c). */
	if (context->async_write_fd >= 0)
		event_pipe_push(context->async_write_fd, &record, sizeof(record));
	pthread_mutex_unlock(&context->async_lock);
}

static bool event_has_element(const void *record, const void *element)
{
	const struct ib_uverbs_async_event_desc *event = record;

	/* Elements are addresses; the port number of a port event never equals one. */
	return event->element == (uintptr_t)element;
}

void uroce_async_purge(struct uroce_context *context, void *element)
{
	pthread_mutex_lock(&context->async_lock);
	if (context->async_write_fd >= 0)
		event_pipe_purge(context->base.context.async_fd, context->async_write_fd,
				 sizeof(struct ib_uverbs_async_event_desc), event_has_element,
				 element);
	pthread_mutex_unlock(&context->async_lock);
}

void uroce_async_wait_acked(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *completed,
			    atomic_uint *taken)
{
	pthread_mutex_lock(mutex);
	while (*completed != atomic_load(taken))
		pthread_cond_wait(cond, mutex);
	pthread_mutex_unlock(mutex);
}
