/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Scheduler statistics of a polling thread (whether it sleeps between its polls, and whether
 * another thread waits for its CPU), and when it yields.
 */
#ifndef UROCE_PROGRESS_BASE_POLL_YIELD_H
#define UROCE_PROGRESS_BASE_POLL_YIELD_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Returns the number of voluntary context switches of the calling thread; sched_yield() is not
 * counted.
 */
uint64_t thread_voluntary_switches(void);
/*
 * Returns the number of involuntary context switches of the calling thread: sched_yield() ran
 * another thread, or the kernel preempted this one.
 */
uint64_t thread_involuntary_switches(void);

/*
 * A poller yields its CPU after polling for this long without result, since its peer may wait for
 * this CPU.  A time and not a number of polls, because a poll of a socket is a system call and one
 * of shared memory is not.  Restarts with each packet, because a poller that has work should keep
 * the CPU.
 */
#define POLL_YIELD_NS 5000

struct poll_backoff {
	uint64_t ns;
	uint64_t preemptions; /* thread_involuntary_switches() at its last call */
	bool wait_found_work; /* Since the last yield, a wait longer than POLL_YIELD_NS has found
				 work. */
};
#define POLL_BACKOFF_INITIALIZER    \
	{                           \
		.ns = POLL_YIELD_NS \
	}

/*
 * Adapts the wait before the next yield.  took is the duration of the last sched_yield() in
 * nanoseconds.  preemptions is thread_involuntary_switches(), a system call, which is made only if
 * needed.
 */
void poll_backoff_yielded(struct poll_backoff *backoff, uint64_t took,
			  uint64_t (*preemptions)(void));

#endif
