/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Wakes the progress thread (thread.h): sockets, the broker's delivery socket, watched descriptors,
 * deadlines and calls of other threads.
 *
 * The sockets are always in the epoll set of the progress thread, but without events while
 * disarmed.  Nothing is lost in between, because epoll is level-triggered.
 */
#ifndef UROCE_PROGRESS_WAKEUP_H
#define UROCE_PROGRESS_WAKEUP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "link/link.h"

#define WAKEUP_EVENTS 16

struct progress;
struct wakeup_watch;

struct wakeup {
	int epoll_fd;
	int wake_fd;
	/*
	 * With many addresses: an epoll set of their sockets, otherwise -1.  epoll_fd then contains
	 * this set instead of the sockets, so that a cycle, or arming, takes one system call and
	 * not one for each address.  Changed under cycle_lock and lock.
	 */
	int address_epoll_fd;
	pthread_t thread; /* the progress thread */
	/* Changed under lock. */
	atomic_bool armed;
	/* Time until which the progress thread sleeps while armed; 0 while it is awake. */
	atomic_uint_fast64_t sleeps_until;
	pthread_mutex_t lock; /* protects the events of the sockets, and the watches */
	pthread_cond_t callback_done;
	struct wakeup_watch *watches;
	struct wakeup_watch *running_watch; /* watch whose callback is running */
};

/* Source of an epoll event, in the upper half of its data; the descriptor is in the lower half. */
enum wakeup_source {
	SOURCE_WAKE,
	SOURCE_BROKER,
	SOURCE_WRITER,
	SOURCE_ADDRESS,
	SOURCE_WATCH,
};

/* Returns 0 or a negative errno; on failure nothing remains allocated. */
int wakeup_open(struct progress *progress);
void wakeup_close(struct wakeup *wakeup);
/* For a forked child: closes the descriptors only; async-signal-safe. */
void wakeup_abandon(struct wakeup *wakeup);

static inline bool wakeup_armed_flag(const struct wakeup *wakeup)
{
	return atomic_load_explicit(&wakeup->armed, memory_order_seq_cst);
}

bool wakeup_is_armed(const struct progress *progress);

/* Arms or disarms the sockets.  Any thread; no lock except cycle_lock may be held. */
void wakeup_arm(struct progress *progress);
void wakeup_disarm(struct progress *progress);

/* Wakes the progress thread, which then checks everything. */
void wakeup_thread(struct progress *progress);
/* Wakes the progress thread if it sleeps longer than deadline, which has become the earliest. */
void wakeup_for_deadline(struct progress *progress, uint64_t deadline);

/* Adds or removes the socket of an address.  Caller holds cycle_lock and wakeup.lock. */
int wakeup_add_address(struct progress *progress, struct link_addr *addr);
void wakeup_remove_address(struct progress *progress, struct link_addr *addr);
/* Adds or removes the socket of a multicast group.  Locks as for an address. */
int wakeup_add_group(struct progress *progress, struct link_group *group);
void wakeup_remove_group(struct progress *progress, struct link_group *group);

/*
 * Returns the number of addresses in address_epoll_fd whose sockets are readable, at most
 * WAKEUP_EVENTS. Caller runs the cycle.
 */
int wakeup_readable(struct wakeup *wakeup, struct link_addr *readable[WAKEUP_EVENTS]);

/* For the progress thread: waits for events as epoll_wait(2) does; timeout_ns may be ENG_NEVER. */
int wakeup_wait(struct wakeup *wakeup, struct epoll_event events[WAKEUP_EVENTS],
		uint64_t timeout_ns);
/*
 * For the progress thread: calls the callback of fd, which is watched and has become readable.  No
 * lock may be held.
 */
void wakeup_call_watch(struct wakeup *wakeup, int fd);

#endif
