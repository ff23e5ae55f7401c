/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Commands that create, destroy and migrate ids, and that read and write events. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "command.h"
#include "ucm/event.h"
#include "ucm/ucm_core.h"

/*
 * Returns the QP type of a port space, or 0 if the port space is unknown.  RDMA_PS_IB has no type
 * of its own.
 */
static uint8_t get_qp_type(const struct rdma_ucm_create_id *in)
{
	switch (in->ps) {
	case RDMA_PS_TCP:
		return IBV_QPT_RC;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		return IBV_QPT_UD;
	case RDMA_PS_IB:
		return in->qp_type;
	default:
		return 0;
	}
}

int ucm_cmd_create_id(struct ucm_call *call)
{
	const struct rdma_ucm_create_id *in = call->in;
	struct rdma_ucm_create_id_resp resp;
	uint8_t qp_type = get_qp_type(in);
	struct ucm_id *id;
	int error;

	if (!qp_type && in->ps != RDMA_PS_IB)
		return EINVAL;
	id = ucm_id_create(call->channel, in->ps, qp_type);
	if (!id)
		return errno;
	id->uid = in->uid;
	resp.id = id->handle;
	error = ucm_respond(in->response, &resp, sizeof(resp));
	if (error)
		ucm_id_destroy(id);
	return error;
}

int ucm_cmd_destroy_id(struct ucm_call *call)
{
	const struct rdma_ucm_destroy_id *in = call->in;
	struct rdma_ucm_destroy_id_resp resp;
	int error;
	struct ucm_id *id = ucm_id_find_any(call->channel, in->id, &error);

	if (!id)
		return error;
	resp.events_reported = id->events_reported;
	ucm_id_destroy(id);
	return ucm_respond(in->response, &resp, sizeof(resp));
}

/* Counts an event that the application reads. */
static void count_reported(struct ucm_event *event)
{
	event->id->events_reported++;
	if (event->group)
		event->group->events_reported++;
	if (event->request)
		event->id->unread_requests--;
}

int ucm_cmd_get_event(struct ucm_call *call)
{
	const struct rdma_ucm_get_event *in = call->in;
	struct ucm_channel *channel = call->channel;
	struct ucm_event *event;
	size_t bytes = sizeof(event->resp);
	int error;

	if (!in->response)
		return EFAULT;
	while (!(event = ucm_channel_take_event(channel))) {
		if (!ucm_channel_is_blocking(channel))
			return EAGAIN;
		error = ucm_channel_wait(channel);
		if (error)
			return error;
	}
	count_reported(event);
	if (bytes > call->out_bytes)
		bytes = call->out_bytes;
	error = ucm_respond(in->response, &event->resp, bytes);
	free(event);
	return error;
}

int ucm_cmd_migrate_id(struct ucm_call *call)
{
	const struct rdma_ucm_migrate_id *in = call->in;
	struct rdma_ucm_migrate_resp resp;
	struct ucm_channel *from;
	struct ucm_id *id;
	int error;

	if (fcntl((int)in->fd, F_GETFD) < 0)
		return ENOENT;
	from = ucm_channel_find((int)in->fd);
	if (!from)
		return EINVAL;
	id = ucm_id_find(from, in->id, &error);
	if (!id)
		return error;
	resp.events_reported = id->events_reported;
	error = from != call->channel ? ucm_id_move(id, call->channel) : 0;
	if (error)
		return error;
	return ucm_respond(in->response, &resp, sizeof(resp));
}

int ucm_cmd_write_event(struct ucm_call *call)
{
	const struct ucm_write_cm_event *in = call->in;
	struct ucm_event *event;
	struct ucm_id *id;
	int error;

	if (in->event != UCM_EVENT_USER && in->event != UCM_EVENT_INTERNAL)
		return EINVAL;
	id = ucm_id_find(call->channel, in->id, &error);
	if (!id)
		return error;
	event = ucm_event_new(id, (enum ucm_event_type)in->event, (int)in->status);
	if (!event)
		return ENOMEM;
	memcpy(&event->resp.param, &in->argument, sizeof(in->argument));
	ucm_channel_queue_event(event);
	return 0;
}
