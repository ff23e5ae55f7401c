/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Completion channels.  ibv_get_cq_event() of libibverbs reads events in the kernel's format,
 * struct ib_uverbs_comp_event_desc, from the channel's fd, the read end of a pipe.
 *
 * The pipe is full if the application has not read for long.  Further events are counted at their
 * CQ and written once there is room: libibverbs reports each event read, see uroce_cq_event().
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

#include "cq.h"
#include "event_pipe.h"
#include "verbs/fork.h"

enum {
	MAX_DEFERRED = 64,
};

static struct uroce_comp_channel *to_uroce_channel(struct ibv_comp_channel *channel)
{
	return (struct uroce_comp_channel *)channel;
}

struct ibv_comp_channel *uroce_create_comp_channel(struct ibv_context *context)
{
	struct uroce_comp_channel *channel;
	int error;

	/* No object is created in a closed context, as in ops.c. */
	if (to_uroce_context(context)->closed) {
		errno = EBADF;
		return NULL;
	}
	channel = calloc(1, sizeof(*channel));
	if (!channel)
		return NULL;
	error = event_pipe_open(&channel->base.fd, &channel->write_fd);
	if (error) {
		free(channel);
		errno = error;
		return NULL;
	}
	channel->base.context = context;
	TAILQ_INIT(&channel->pending);
	pthread_mutex_init(&channel->lock, NULL);
	uroce_context_hold(context);
	return &channel->base;
}

int uroce_destroy_comp_channel(struct ibv_comp_channel *public)
{
	struct uroce_comp_channel *channel = to_uroce_channel(public);
	struct ibv_context *context = public->context;
	int users;

	/* libibverbs counts the channel's CQs under this lock. */
	pthread_mutex_lock(&context->mutex);
	users = public->refcnt;
	pthread_mutex_unlock(&context->mutex);
	if (users)
		return EBUSY;
	close(public->fd);
	close(channel->write_fd);
	pthread_mutex_destroy(&channel->lock);
	free(channel);
	uroce_context_release(context);
	return 0;
}

/*
 * Events deferred until the end of a progress cycle, after its packets have been sent: a thread
 * that an event wakes may post at once, and the peer would receive that message before the ACK of
 * the previous one.  Programs with one channel for two CQs rely on the order that adapters keep.
 * One list for each worker, under its cycle lock.
 */
static struct deferred_events {
	unsigned int count;
	struct {
		struct uroce_comp_channel *channel;
		struct uroce_cq *cq;
	} event[MAX_DEFERRED];
} deferred_events[PROGRESS_WORKERS];

static struct uroce_cq *cq_of_pending(struct uroce_pending_events *pending)
{
	return container_of(pending, struct uroce_cq, pending_events);
}

/* Returns false if the pipe is full.  Called with channel->lock held, as the next three. */
static bool write_event(struct uroce_comp_channel *channel, struct uroce_cq *cq)
{
	struct ib_uverbs_comp_event_desc record = { .cq_handle = (uintptr_t)&cq->base.cq };

	return event_pipe_push(channel->write_fd, &record, sizeof(record)) != ENOBUFS;
}

static void add_pending(struct uroce_comp_channel *channel, struct uroce_pending_events *pending)
{
	if (!pending->count++)
		TAILQ_INSERT_TAIL(&channel->pending, pending, link);
}

static void remove_pending(struct uroce_comp_channel *channel, struct uroce_pending_events *pending)
{
	if (pending->count)
		TAILQ_REMOVE(&channel->pending, pending, link);
	pending->count = 0;
}

/* Writes pending events until the pipe is full; CQs in the order of their oldest pending event. */
static void write_pending(struct uroce_comp_channel *channel)
{
	struct uroce_pending_events *first;

	while ((first = TAILQ_FIRST(&channel->pending))) {
		if (!write_event(channel, cq_of_pending(first)))
			return;
		if (first->count > 1)
			first->count--;
		else
			remove_pending(channel, first);
	}
	atomic_store(&channel->has_pending, false);
}

static void send_event(struct uroce_comp_channel *channel, struct uroce_cq *cq)
{
	pthread_mutex_lock(&channel->lock);
	/* Pending events go first; otherwise later ones would starve them. */
	if (!TAILQ_EMPTY(&channel->pending) || !write_event(channel, cq)) {
		add_pending(channel, &cq->pending_events);
		/*
		 * Set the flag for readers, then try again.  If the pipe is still full, an unread
		 * event in it will be read later, and its reader sees the flag.
		 */
		atomic_store(&channel->has_pending, true);
		write_pending(channel);
	}
	pthread_mutex_unlock(&channel->lock);
}

void uroce_channel_event_read(struct uroce_comp_channel *channel)
{
	if (!atomic_load(&channel->has_pending))
		return;
	pthread_mutex_lock(&channel->lock);
	write_pending(channel);
	pthread_mutex_unlock(&channel->lock);
}

void uroce_channel_event(struct uroce_comp_channel *channel, struct uroce_cq *cq)
{
	int worker = progress_cycle_worker();
	struct deferred_events *deferred = worker < 0 ? NULL : &deferred_events[worker];

	if (!deferred || deferred->count == MAX_DEFERRED) {
		send_event(channel, cq);
		return;
	}
	deferred->event[deferred->count].channel = channel;
	deferred->event[deferred->count].cq = cq;
	deferred->count++;
}

static __attribute__((noinline)) void send_deferred(struct deferred_events *deferred)
{
	for (unsigned int i = 0; i < deferred->count; i++)
		send_event(deferred->event[i].channel, deferred->event[i].cq);
	deferred->count = 0;
}

void uroce_channel_flush_deferred(unsigned int worker)
{
	if (deferred_events[worker].count)
		send_deferred(&deferred_events[worker]);
}

static void finish_fork_in_child(void)
{
	/* The parent writes its deferred events. */
	for (unsigned int i = 0; i < PROGRESS_WORKERS; i++)
		deferred_events[i].count = 0;
}

static bool event_has_cq(const void *record, const void *cq)
{
	const struct ib_uverbs_comp_event_desc *event = record;

	return event->cq_handle == (uintptr_t)cq;
}

void uroce_channel_purge(struct uroce_comp_channel *channel, struct uroce_cq *cq)
{
	pthread_mutex_lock(&channel->lock);
	remove_pending(channel, &cq->pending_events);
	event_pipe_purge(channel->base.fd, channel->write_fd,
			 sizeof(struct ib_uverbs_comp_event_desc), event_has_cq, &cq->base.cq);
	write_pending(channel);
	pthread_mutex_unlock(&channel->lock);
}

UROCE_FORK_HANDLERS(UROCE_FORK_CHANNELS, .child = finish_fork_in_child)
