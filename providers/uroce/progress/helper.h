/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The helper thread, in one of two modes:
 *
 *   armed     no application polls: it waits for datagrams, deadlines and calls, and makes the
 *             turns; while datagrams come one after the other it spins for a moment before it
 *             sleeps, as long as no other thread is ready to run on its core
 *   disarmed  an application thread polls: the sockets are in the helper's epoll with no events,
 *             so that a datagram wakes no thread; every PROGRESS_TICK_NS, up to 16 times as often
 *             where polls have stopped while something waited, it looks whether they still come
 *
 * Application threads disarm after a streak of polls; the helper arms when polls have stopped, the
 * application when it arms a CQ for an event.  Nothing is lost in between, because epoll is level
 * triggered: a datagram that came while disarmed is reported when the socket is armed.  A ring in
 * shared memory wakes a thread only if that is requested, right before the armed helper sleeps; so
 * a thread that arms the helper wakes it as well.
 */
#ifndef UROCE_PROGRESS_HELPER_H
#define UROCE_PROGRESS_HELPER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct progress;

struct helper {
	atomic_bool stop;
	/* The process ends, and a thread of it waits until leave_send() is done. */
	atomic_bool leaves;
	/* The helper's own: how often it looks while disarmed. */
	uint64_t tick_ns;
	/* Not before this time does an armed helper spin; the helper's own. */
	uint64_t spin_again;
	uint64_t spin_pause;
};

/* 0 or a negative errno; on failure nothing is left. */
int helper_start(struct progress *progress);
/* Ends the thread and waits for it. */
void helper_stop(struct progress *progress);

#endif
