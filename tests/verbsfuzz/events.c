/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Arming completion queues, and reading events, which must be of existing objects, and no more than
 * one for each arming.
 */
#include <poll.h>

#include "world.h"

static bool is_readable(int fd)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };

	return fd >= 0 && poll(&wait, 1, 0) == 1 && (wait.revents & POLLIN);
}

void do_notify(struct world *world)
{
	struct queue *queue = PICK(world, queues);
	int solicited = (int)below(world, 2), error;

	if (!queue)
		return;
	error = ibv_req_notify_cq(queue->verbs, solicited);
	note(world, "req_notify_cq %p %d: %d", (void *)queue->verbs, solicited, error);
	MUST(world, error == (queue->context->closed ? EIO : 0), "req_notify_cq: %s",
	     strerror(error));
	queue->armings += !error;
}

static void read_completion_event(struct world *world, const struct channel *channel)
{
	struct ibv_cq *cq = NULL;
	void *context = NULL;
	struct queue *queue;

	MUST(world, !ibv_get_cq_event(channel->verbs, &cq, &context), "get_cq_event: %s",
	     strerror(errno));
	for (uint32_t i = 0; i < MAX_QUEUES; i++) {
		queue = &world->queues[i];
		if (queue->verbs && queue->verbs == cq)
			break;
		queue = NULL;
	}
	note(world, "event of cq %p", (void *)cq);
	MUST(world, queue && queue == context && queue->channel == channel,
	     "an event of a completion queue that is not of this channel");
	queue->events++;
	MUST(world, queue->events <= queue->armings, "more events than a queue was armed for");
	ibv_ack_cq_events(cq, 1);
}

static bool pair_is_there(const struct world *world, const struct context *context,
			  const struct ibv_qp *qp)
{
	for (uint32_t i = 0; i < MAX_PAIRS; i++)
		if (world->pairs[i].verbs == qp && world->pairs[i].context == context)
			return true;
	return false;
}

static bool queue_is_there(const struct world *world, const struct context *context,
			   const struct ibv_cq *cq)
{
	for (uint32_t i = 0; i < MAX_QUEUES; i++)
		if (world->queues[i].verbs == cq && world->queues[i].context == context)
			return may_be_dead(&world->queues[i]);
	return false;
}

static bool shared_is_there(const struct world *world, const struct context *context,
			    const struct ibv_srq *srq)
{
	for (uint32_t i = 0; i < MAX_SHARED; i++)
		if (world->shared[i].verbs == srq && world->shared[i].context == context)
			return true;
	return false;
}

static void read_async_event(struct world *world, const struct context *context)
{
	struct ibv_async_event event;
	bool known = true;

	MUST(world, !ibv_get_async_event(context->verbs, &event), "get_async_event: %s",
	     strerror(errno));
	note(world, "async event %s", ibv_event_type_str(event.event_type));
	switch (event.event_type) {
	case IBV_EVENT_CQ_ERR:
		known = queue_is_there(world, context, event.element.cq);
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		known = pair_is_there(world, context, event.element.qp);
		break;
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		known = shared_is_there(world, context, event.element.srq);
		break;
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_GID_CHANGE:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
		break;
	default:
		known = false;
	}
	MUST(world, known, "an event %s of no such object", ibv_event_type_str(event.event_type));
	ibv_ack_async_event(&event);
}

void do_events(struct world *world)
{
	for (uint32_t i = 0; i < MAX_CHANNELS; i++) {
		const struct channel *channel = &world->channels[i];

		while (channel->verbs && !channel->context->closed &&
		       is_readable(channel->verbs->fd))
			read_completion_event(world, channel);
	}
	for (uint32_t i = 0; i < MAX_CONTEXTS; i++) {
		const struct context *context = &world->contexts[i];

		while (context->verbs && !context->closed && is_readable(context->verbs->async_fd))
			read_async_event(world, context);
	}
}
