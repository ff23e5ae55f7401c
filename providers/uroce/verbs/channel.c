/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Completion channels.  ibv_get_cq_event() of libibverbs reads records of the kernel's form, which
 * name the CQ, from the channel's descriptor.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

#include "event_pipe.h"
#include "uroce.h"

enum {
	MAX_KEPT = 64,
};

static struct uroce_comp_channel *to_uroce_channel(struct ibv_comp_channel *channel)
{
	return (struct uroce_comp_channel *)channel;
}

struct ibv_comp_channel *uroce_create_comp_channel(struct ibv_context *context)
{
	struct uroce_comp_channel *channel = calloc(1, sizeof(*channel));
	int error;

	if (!channel)
		return NULL;
	error = event_pipe_open(&channel->base.fd, &channel->write_fd);
	if (error) {
		free(channel);
		errno = error;
		return NULL;
	}
	channel->base.context = context;
	pthread_mutex_init(&channel->lock, NULL);
	return &channel->base;
}

int uroce_destroy_comp_channel(struct ibv_comp_channel *public)
{
	struct uroce_comp_channel *channel = to_uroce_channel(public);
	int users;

	/* libibverbs counts the channel's CQs under this lock. */
	pthread_mutex_lock(&public->context->mutex);
	users = public->refcnt;
	pthread_mutex_unlock(&public->context->mutex);
	if (users)
		return EBUSY;
	close(public->fd);
	close(channel->write_fd);
	pthread_mutex_destroy(&channel->lock);
	free(channel);
	return 0;
}

/*
 * Events of a turn, kept back until it has sent its answers: whoever is woken may post at once, and
 * the peer would see that before the ACK of what was received.  Programs with one channel for both
 * of their CQs rely on the order that adapters keep.  Under the turn's lock.
 */
static struct {
	unsigned int count;
	struct {
		struct uroce_comp_channel *channel;
		void *cq;
	} event[MAX_KEPT];
} kept;

static void push_event(struct uroce_comp_channel *channel, void *cq)
{
	struct ib_uverbs_comp_event_desc record = { .cq_handle = (uintptr_t)cq };
	int error;

	pthread_mutex_lock(&channel->lock);
	error = event_pipe_push(channel->write_fd, &record, sizeof(record));
	pthread_mutex_unlock(&channel->lock);
	/* Twice as many as there can be CQs are unread, so this CQ's is most likely among them. */
	(void)error;
}

void uroce_channel_event(struct uroce_comp_channel *channel, void *cq)
{
	if (!progress_in_turn() || kept.count == MAX_KEPT) {
		push_event(channel, cq);
		return;
	}
	kept.event[kept.count].channel = channel;
	kept.event[kept.count].cq = cq;
	kept.count++;
}

void uroce_channel_turn_over(void)
{
	for (unsigned int i = 0; i < kept.count; i++)
		push_event(kept.event[i].channel, kept.event[i].cq);
	kept.count = 0;
}

void uroce_channel_forked(void)
{
	/* The parent tells them. */
	kept.count = 0;
}

static bool is_about(const void *record, const void *cq)
{
	const struct ib_uverbs_comp_event_desc *event = record;

	return event->cq_handle == (uintptr_t)cq;
}

void uroce_channel_purge(struct uroce_comp_channel *channel, void *cq)
{
	pthread_mutex_lock(&channel->lock);
	event_pipe_purge(channel->base.fd, channel->write_fd,
			 sizeof(struct ib_uverbs_comp_event_desc), is_about, cq);
	pthread_mutex_unlock(&channel->lock);
}
