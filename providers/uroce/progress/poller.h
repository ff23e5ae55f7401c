/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A thread that polls in vain, as the kernel sees it: does it sleep between its polls, and does
 * another one wait for its core?
 */
#ifndef UROCE_PROGRESS_POLLER_H
#define UROCE_PROGRESS_POLLER_H

#include <stdbool.h>
#include <stdint.h>

/* How often the calling thread has given its processor away to sleep; sched_yield() is no sleep. */
uint64_t poller_sleeps(void);
/*
 * How often another thread has had the calling thread's processor without that: sched_yield() has
 * found one, or the kernel has preempted it.
 */
uint64_t poller_preemptions(void);

/*
 * A poller yields its core when it has polled in vain for so long: its peer may wait for this very
 * core.  It is a time, and not a number of polls, because a look at the socket is a system call and
 * one at shared memory is not; and it begins anew with each packet, because a poller that has work
 * to do is best left to it.  Counting 64 polls in vain instead, four pairs of ib_send_lat on two
 * cores made 49 and not 82 thousand round trips a second, and through shared memory 92 and not 378
 * (medians of three).
 */
#define POLLER_PATIENCE_NS 5000

struct poller_patience {
	uint64_t ns;
	uint64_t preemptions; /* when they were asked for last */
	bool paid; /* Since the last yield a wait longer than POLLER_PATIENCE_NS has found work. */
};
#define POLLER_PATIENCE                  \
	{                                \
		.ns = POLLER_PATIENCE_NS \
	}

/*
 * sched_yield() took so many nanoseconds.  preemptions is poller_preemptions, a system call, which
 * is made only where it matters.
 */
void poller_yielded(struct poller_patience *patience, uint64_t took, uint64_t (*preemptions)(void));

#endif
