/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Channels: the descriptors that librdmacm takes for the kernel's, and the events that wait on
 * them.  A descriptor is an eventfd whose count is the number of waiting events, so that programs
 * can poll it, put it into an epoll set and set O_NONBLOCK.
 *
 * All functions are called with the lock of manager.h held.
 */
#ifndef UROCE_UCM_CHANNEL_H
#define UROCE_UCM_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/rdma_user_cm.h>

struct ucm_id;
struct ucm_group;

struct ucm_event {
	struct ucm_event *next, **link; /* in the channel's list */
	struct ucm_event *next_of_id, **link_of_id;
	struct ucm_id *id;	 /* that it counts for: of a CONNECT_REQUEST the listener */
	struct ucm_id *request;	 /* CONNECT_REQUEST: the new id */
	struct ucm_group *group; /* multicast events */
	struct rdma_ucm_event_resp resp;
};

struct ucm_channel {
	int fd;		    /* the application's */
	int private_fd;	    /* the same eventfd: the application may close the other one unseen */
	bool open;	    /* in the table */
	unsigned int users; /* threads that are in a command; the last one frees a closed one */
	uint32_t changes;   /* counts whatever a waiting thread should look at: a futex */
	struct ucm_event *first_event, **last_event;
	struct ucm_id *ids;
};

/* A new one, or NULL with errno.  taken is called with its descriptor before it is in the table. */
struct ucm_channel *ucm_channel_open(void (*taken)(int fd));
/* NULL: not a channel. */
struct ucm_channel *ucm_channel_of(int fd);
/*
 * Its ids must be gone.  Closes the application's descriptor unless another one has that number.  A
 * thread that waits for an event there goes on waiting, as with the kernel's: programs close their
 * channel under such threads when they end.
 */
void ucm_channel_close(struct ucm_channel *channel, bool close_fd);
/* A thread is using it, and not any more: then it may be freed. */
void ucm_channel_hold(struct ucm_channel *channel);
void ucm_channel_release(struct ucm_channel *channel);
/* Each open one. */
void ucm_channel_each(void (*visit)(struct ucm_channel *channel, void *arg), void *arg);
/* In a forked child: what is open is dead (channel.c says how). */
void ucm_channel_forked(void);
/* The descriptor is a channel of the process that this one was forked from, and none of ours. */
bool ucm_channel_is_dead(int fd);
/* It is about to be closed by whoever has called us. */
void ucm_channel_forget_dead(int fd);

/* Append event to the channel of its id; the channel owns it from then on. */
void ucm_channel_queue(struct ucm_event *event);
/* Take the first event out, or NULL. */
struct ucm_event *ucm_channel_take(struct ucm_channel *channel);
/* Take an event out of its id's channel. */
void ucm_channel_remove(struct ucm_event *event);
bool ucm_channel_blocks(const struct ucm_channel *channel);
/*
 * Wait for a change: the lock is released meanwhile.  The thread may be cancelled while it waits;
 * the channel must be held, and is released then.  0, or EINTR after a signal whose handler was
 * not to be restarted after.
 */
int ucm_channel_wait(struct ucm_channel *channel);

#endif
