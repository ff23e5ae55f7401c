/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The progress thread, in one of two modes:
 *
 *   armed     no application thread polls: the thread waits for datagrams, deadlines and calls, and
 *             runs the cycles; while datagrams keep arriving it spins for a moment before it
 *             sleeps, unless another thread is ready to run on its CPU
 *   disarmed  an application thread polls: the sockets are in the progress thread's epoll set
 *             without events, so that a datagram wakes no thread; the thread checks every
 *             PROGRESS_TICK_NS whether polls continue, or up to 16 times as often if polls have
 *             stopped while packets waited
 *
 * Application threads disarm after a streak of polls; the progress thread arms when polls have
 * stopped, and the application when it arms a CQ for an event.  Nothing is lost in between, because
 * epoll is level-triggered: a datagram that arrived while disarmed is reported when the socket is
 * armed.  A ring in shared memory wakes a thread only on request, which the armed progress thread
 * makes right before it sleeps; therefore a thread that arms also wakes the progress thread.
 */
#ifndef UROCE_PROGRESS_THREAD_H
#define UROCE_PROGRESS_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct progress;

struct progress_thread {
	atomic_bool stop;
	/* set while an exiting thread waits for exit_flush_run() */
	atomic_bool exit_requested;
	/* Interval of the checks while disarmed; used by the progress thread only. */
	uint64_t tick_ns;
	/*
	 * Time before which the progress thread does not spin, and the current length of such a
	 * pause; used by the progress thread only.
	 */
	uint64_t spin_not_before;
	uint64_t spin_pause;
};

/*
 * Starts the progress thread.  Returns 0 or a negative errno; on failure nothing remains allocated.
 */
int progress_thread_start(struct progress *progress);
/* Ends the thread and waits for it. */
void progress_thread_stop(struct progress *progress);

/*
 * exit_flush.c acknowledges at process exit what has arrived: an adapter would still do so, and the
 * peer waits for the ACKs.
 *
 * The process may end by exit() in a signal handler, which may have interrupted a thread that holds
 * any lock.  So the exiting thread waits for no lock; the progress thread sends.
 */

/* Makes the progress thread run exit_flush_run(). */
void exit_flush_start(struct progress *progress);
/* Waits until the ACKs have been sent, at the latest until the time until (progress_now()). */
void exit_flush_wait(struct progress *progress, uint64_t until);
/*
 * Receives what has arrived and sends the pending ACKs.  Called by the progress thread if
 * progress->thread.exit_requested is set, which remains set if a socket buffer or ring was full.
 */
void exit_flush_run(struct progress *progress);

#endif
