/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What wakes the helper thread (helper.h): the sockets, the control socket of the link, watched
 * descriptors, deadlines and calls of other threads.
 *
 * While it is armed the sockets are in its epoll; while it is disarmed they are there with no
 * events.  Nothing is lost in between, because epoll is level triggered.
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
	 * Once there are many addresses: their sockets, in epoll_fd by this descriptor alone, so
	 * that neither a turn nor arming takes a system call for each.  Else -1.  Changed under the
	 * turn lock too.
	 */
	int many_fd;
	pthread_t thread; /* the helper's */
	/* Changed under lock. */
	atomic_bool armed;
	/* Until when the helper sleeps while armed; 0 while it is awake. */
	atomic_uint_fast64_t sleeps_until;
	pthread_mutex_t lock; /* the modes of the sockets, watches */
	pthread_cond_t returned;
	struct wakeup_watch *watches;
	struct wakeup_watch *running; /* whose callback is being called */
};

/* What an epoll event is about; the descriptor is in the lower half. */
enum wakeup_source {
	SOURCE_WAKE,
	SOURCE_BROKER,
	SOURCE_WRITER,
	SOURCE_ADDRESS,
	SOURCE_WATCH,
};

/* 0 or a negative errno; on failure nothing is left. */
int wakeup_open(struct progress *progress);
void wakeup_close(struct wakeup *wakeup);
/* In a forked child: close the descriptors only; async-signal-safe. */
void wakeup_abandon(struct wakeup *wakeup);

static inline bool wakeup_armed_flag(const struct wakeup *wakeup)
{
	return atomic_load_explicit(&wakeup->armed, memory_order_seq_cst);
}

bool wakeup_is_armed(const struct progress *progress);

/* Arm or disarm now.  Any thread, no lock but the turn's may be held. */
void wakeup_arm(struct progress *progress);
void wakeup_disarm(struct progress *progress);

/* Let the helper look at everything soon. */
void wakeup_helper(struct progress *progress);
/* A deadline has been queued that is the earliest of all: wake the helper if it sleeps longer. */
void wakeup_earlier(struct progress *progress, uint64_t deadline);

/* The address has been opened, or is about to be closed.  Caller holds both locks. */
int wakeup_add_address(struct progress *progress, struct link_addr *addr);
void wakeup_remove_address(struct progress *progress, struct link_addr *addr);
/* The same for a multicast group. */
int wakeup_add_group(struct progress *progress, struct link_group *group);
void wakeup_remove_group(struct progress *progress, struct link_group *group);

/*
 * Number of addresses whose sockets have something to read, WAKEUP_EVENTS at most, of those in
 * many_fd.  Caller makes the turn.
 */
int wakeup_readable(struct wakeup *wakeup, struct link_addr *readable[WAKEUP_EVENTS]);

/* For the helper: epoll_wait(2), ENG_NEVER waits for ever. */
int wakeup_wait(struct wakeup *wakeup, struct epoll_event events[WAKEUP_EVENTS],
		uint64_t timeout_ns);
/* For the helper: fd, which is watched, is readable.  No lock is held. */
void wakeup_call_watch(struct wakeup *wakeup, int fd);

#endif
