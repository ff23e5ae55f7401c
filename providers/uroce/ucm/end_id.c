/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Ends ids, and the connections of ids whose device is removed. */
#include <stdlib.h>

#include "ucm/addr/devices.h"
#include "ucm/conn/connect_retry.h"
#include "ucm/conn/connection.h"
#include "event.h"
#include "id.h"

static void drop_events(struct ucm_id *id)
{
	struct ucm_event *event = id->unread_event;

	if (event) {
		ucm_channel_remove_event(event);
		event->id->unread_requests--;
		free(event);
	}
	while ((event = TAILQ_FIRST(&id->events))) {
		ucm_channel_remove_event(event);
		if (event->request)
			ucm_id_destroy(event->request);
		free(event);
	}
}

static void end_connection(struct ucm_id *id)
{
	if (id->listener)
		ucm_connection_unlisten(id);
	ucm_retry_cancel(id);
	if (id->conn)
		ucm_connection_destroy(id);
	if (id->port)
		gsi_port_close(id->port);
	id->port = NULL;
}

void ucm_id_destroy(struct ucm_id *id)
{
	drop_events(id);
	ucm_groups_leave(id);
	end_connection(id);
	ucm_id_free(id);
}

static void remove_device(struct ucm_id *id, void *arg)
{
	(void)arg;
	if (id->device == UCM_NO_DEVICE || id->device_removed || !ucm_device_is_removed(id->device))
		return;
	id->device_removed = true;
	end_connection(id);
	/* For an id that has not been accepted, ACCEPT returns the error. */
	if (id->reports_events)
		ucm_event_post(id, UCM_EVENT_DEVICE_REMOVAL, 0);
}

void ucm_ids_device_removed(void)
{
	ucm_ids_each(remove_device, NULL);
}

void ucm_ids_destroy(struct ucm_channel *channel)
{
	while (!LIST_EMPTY(&channel->ids))
		ucm_id_destroy(LIST_FIRST(&channel->ids));
}
