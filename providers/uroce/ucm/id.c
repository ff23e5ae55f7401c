/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "id.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "table.h"

static struct ucm_table ids;
static uint64_t last_serial;

static void link_id(struct ucm_id *id, struct ucm_channel *channel)
{
	id->channel = channel;
	LIST_INSERT_HEAD(&channel->ids, id, link);
}

struct ucm_id *ucm_id_create(struct ucm_channel *channel, uint16_t port_space, uint8_t qp_type)
{
	struct ucm_id *id = calloc(1, sizeof(*id));

	if (!id || !ucm_table_add(&ids, id, &id->handle)) {
		free(id);
		errno = ENOMEM;
		return NULL;
	}
	id->serial = ++last_serial;
	id->port_space = port_space;
	id->qp_type = qp_type;
	id->reports_events = true;
	TAILQ_INIT(&id->events);
	if (getrandom(&id->rq_psn, sizeof(id->rq_psn), GRND_NONBLOCK) < 0)
		id->rq_psn = (uint32_t)progress_now();
	id->rq_psn &= 0xffffff;
	link_id(id, channel);
	return id;
}

struct ucm_id *ucm_id_find_any(const struct ucm_channel *channel, uint32_t handle, int *error)
{
	struct ucm_id *id = ucm_table_find(&ids, handle);

	if (!id)
		*error = ENOENT;
	else if (id->channel != channel)
		*error = EINVAL;
	else
		return id;
	return NULL;
}

struct ucm_id *ucm_id_find(const struct ucm_channel *channel, uint32_t handle, int *error)
{
	struct ucm_id *id = ucm_id_find_any(channel, handle, error);

	if (!id || !id->device_removed)
		return id;
	*error = ENXIO;
	return NULL;
}

struct ucm_id *ucm_id_revalidate(uint32_t handle, uint64_t serial)
{
	struct ucm_id *id = ucm_table_find(&ids, handle);

	return id && id->serial == serial ? id : NULL;
}

void ucm_id_free(struct ucm_id *id)
{
	LIST_REMOVE(id, link);
	ucm_table_remove(&ids, id->handle);
	free(id);
}

/*
 * Moves id and its queued events to channel.  A queued CONNECT_REQUEST event refers to a new id
 * that the program has not seen; that id moves as well, with its own events.
 */
static void move_id(struct ucm_id *id, struct ucm_channel *channel)
{
	struct ucm_events events = TAILQ_HEAD_INITIALIZER(events);
	struct ucm_event *event;

	while ((event = TAILQ_FIRST(&id->events))) {
		ucm_channel_remove_event(event);
		TAILQ_INSERT_TAIL(&events, event, of_id);
	}
	LIST_REMOVE(id, link);
	link_id(id, channel);
	while ((event = TAILQ_FIRST(&events))) {
		TAILQ_REMOVE(&events, event, of_id);
		ucm_channel_queue_event(event);
		if (event->request)
			move_id(event->request, channel);
	}
}

int ucm_id_move(struct ucm_id *id, struct ucm_channel *channel)
{
	if (id->unread_event)
		return ENOENT;
	move_id(id, channel);
	return 0;
}

void ucm_ids_each(void (*visit)(struct ucm_id *id, void *arg), void *arg)
{
	for (uint32_t handle = 0; handle < ids.capacity; handle++) {
		if (ids.entries[handle])
			visit(ids.entries[handle], arg);
	}
}

void ucm_ids_forked(void)
{
	memset(&ids, 0, sizeof(ids));
}
