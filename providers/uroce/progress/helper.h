/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The helper thread, in one of two modes:
 *
 *   armed     no application polls: it waits for datagrams, deadlines and calls, and makes the
 *             turns; while datagrams come one after the other it spins for a moment before it
 *             sleeps, as long as no other thread wants its core
 *   disarmed  an application thread polls: the sockets are in the helper's epoll with no events,
 *             so that a datagram wakes no thread; every PROGRESS_TICK_NS it looks whether polls
 *             still come
 *
 * Application threads disarm after a streak of polls; the helper arms when polls have stopped, the
 * application when it arms a CQ for an event.  Nothing is lost in between, because epoll is level
 * triggered: a datagram that came while disarmed is reported when the socket is armed.  A ring in
 * shared memory wakes a thread only if that is requested, right before the armed helper sleeps; so
 * a thread that arms the helper wakes it as well.
 */
#ifndef UROCE_PROGRESS_HELPER_H
#define UROCE_PROGRESS_HELPER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "link/link.h"
#include "poller.h"

struct progress;
struct helper_watch;

struct helper {
	pthread_t thread;
	int epoll_fd;
	int wake_fd;
	atomic_bool stop;
	/* Changed under lock. */
	atomic_bool armed;
	/* Until when the helper sleeps while armed; 0 while it is awake. */
	atomic_uint_fast64_t sleeps_until;
	/* The helper's own: how often it looks while disarmed. */
	uint64_t tick_ns;
	/* Not before this time does an armed helper spin; the helper's own. */
	uint64_t spin_again;
	uint64_t spin_pause;
	uint64_t yield_again; /* nor does it give way while it spins */
	struct poller poller;
	/* A CQ has been armed: until then the application may go to sleep at any moment. */
	atomic_uint_fast64_t hint_until;
	pthread_mutex_t lock; /* the modes of the sockets, watches */
	pthread_cond_t returned;
	struct helper_watch *watches;
	struct helper_watch *running; /* whose callback is being called */
};

/* 0 or a negative errno; on failure nothing is left. */
int helper_start(struct progress *progress);
/* Ends the thread and waits for it. */
void helper_stop(struct progress *progress);
/* In a forked child: close the descriptors only; async-signal-safe. */
void helper_abandon(struct helper *helper);

static inline bool helper_armed_flag(const struct helper *helper)
{
	return atomic_load_explicit(&helper->armed, memory_order_seq_cst);
}

bool helper_is_armed(const struct progress *progress);

/* Arm or disarm now.  Any thread, no lock but the turn's may be held. */
void helper_arm(struct progress *progress);
void helper_disarm(struct progress *progress);

/* Let the helper look at everything soon. */
void helper_wake(struct progress *progress);
/* A deadline has been queued that is the earliest of all: wake the helper if it sleeps longer. */
void helper_earlier(struct progress *progress, uint64_t deadline);

/* The address has been opened, or is about to be closed.  Caller holds helper.lock. */
int helper_add_address(struct progress *progress, struct link_addr *addr);
void helper_remove_address(struct progress *progress, struct link_addr *addr);
/* The same for a multicast group. */
int helper_add_group(struct progress *progress, struct link_group *group);
void helper_remove_group(struct progress *progress, struct link_group *group);

#endif
