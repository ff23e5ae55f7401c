/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Scheduler statistics of a polling thread (whether it sleeps between its polls, and whether
 * another thread waits for its CPU), and when it yields.
 */
#ifndef UROCE_PROGRESS_POLLER_H
#define UROCE_PROGRESS_POLLER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Returns the number of voluntary context switches of the calling thread; sched_yield() is not
 * counted.
 */
uint64_t poller_sleeps(void);
/*
 * Returns the number of involuntary context switches of the calling thread: sched_yield() ran
 * another thread, or the kernel preempted this one.
 */
uint64_t poller_preemptions(void);

/*
 * A poller yields its CPU after polling for this long without result, since its peer may wait for
 * this CPU.  A time and not a number of polls, because a poll of a socket is a system call and one
 * of shared memory is not.  Restarts with each packet, because a poller that has work should keep
 * the CPU.
 */
#define POLLER_PATIENCE_NS 5000

struct poller_patience {
	uint64_t ns;
	uint64_t preemptions; /* poller_preemptions() at its last call */
	bool paid; /* Since the last yield, a wait longer than POLLER_PATIENCE_NS has found work. */
};
#define POLLER_PATIENCE                  \
	{                                \
		.ns = POLLER_PATIENCE_NS \
	}

/*
 * Adapts the wait before the next yield.  took is the duration of the last sched_yield() in
 * nanoseconds.  preemptions is poller_preemptions(), a system call, which is made only if needed.
 */
void poller_yielded(struct poller_patience *patience, uint64_t took, uint64_t (*preemptions)(void));

#endif
