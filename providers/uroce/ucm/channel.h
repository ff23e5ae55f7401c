/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Channels: the descriptors that librdmacm uses in place of those of the kernel, and their queued
 * events.  A descriptor is an eventfd whose count is the number of queued events, so that programs
 * can poll it, add it to an epoll set and set O_NONBLOCK.
 *
 * All functions are called with ucm_lock() held.
 */
#ifndef UROCE_UCM_CHANNEL_H
#define UROCE_UCM_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rdma/rdma_user_cm.h>

struct ucm_id;
struct ucm_group;

struct ucm_event {
	TAILQ_ENTRY(ucm_event) of_channel;
	TAILQ_ENTRY(ucm_event) of_id;
	struct ucm_id *id;	 /* id that counts the event; for CONNECT_REQUEST the listener */
	struct ucm_id *request;	 /* CONNECT_REQUEST only: the new id */
	struct ucm_group *group; /* multicast events only */
	struct rdma_ucm_event_resp resp;
};

TAILQ_HEAD(ucm_events, ucm_event);

struct ucm_channel {
	int fd;		       /* the application's descriptor */
	int private_fd;	       /* duplicate of fd, which the application may close unnoticed */
	bool open;	       /* the channel is in the table */
	unsigned int users;    /* number of threads in a command; the last frees a closed channel */
	uint32_t queued_count; /* futex word: number of events queued so far */
	struct ucm_events events;
	LIST_HEAD(, ucm_id) ids;
};

/*
 * Returns a new channel, or NULL with errno.  Calls before_insert with its descriptor before the
 * channel is added to the table.
 */
struct ucm_channel *ucm_channel_open(void (*before_insert)(int fd));
/* Returns the channel, or NULL if fd is not a channel. */
struct ucm_channel *ucm_channel_find(int fd);
/*
 * Closes a channel whose ids have been destroyed.  close_fd is false if the application has closed
 * the descriptor, so that its number belongs to another file.  A thread that waits for an event of
 * the channel continues to wait, as with the kernel's: programs close their channel under such
 * threads when they exit.
 */
void ucm_channel_close(struct ucm_channel *channel, bool close_fd);
/* Count the threads that use the channel.  The last release frees a closed channel. */
void ucm_channel_hold(struct ucm_channel *channel);
void ucm_channel_release(struct ucm_channel *channel);
/* Calls visit for each open channel. */
void ucm_channel_each(void (*visit)(struct ucm_channel *channel, void *arg), void *arg);
/* In a forked child: replaces the channels of the parent by placeholders (see channel.c). */
void ucm_channel_forked(void);
/* Returns true if this is a forked child and the descriptor is a channel of the parent. */
bool ucm_channel_is_placeholder(int fd);
/* Removes the placeholder of a descriptor that the caller is about to close. */
void ucm_channel_fd_closed(int fd);

/* Appends event to the channel of its id; the channel then owns the event. */
void ucm_channel_queue_event(struct ucm_event *event);
/* Removes and returns the first event, or returns NULL. */
struct ucm_event *ucm_channel_take_event(struct ucm_channel *channel);
/* Removes an event from the channel of its id; the caller then owns the event. */
void ucm_channel_remove_event(struct ucm_event *event);
bool ucm_channel_is_blocking(const struct ucm_channel *channel);
/*
 * Waits until an event is queued, and releases the lock in between.  The thread can be cancelled
 * while it waits; its hold of the channel, which it must have, is then released.  Returns 0, or
 * EINTR after a signal handler without SA_RESTART.
 */
int ucm_channel_wait(struct ucm_channel *channel);

#endif
