/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The thread that polls in vain.  The helper, which looks for packets in its place, must not keep
 * it from a processor.
 */
#ifndef UROCE_PROGRESS_POLLER_H
#define UROCE_PROGRESS_POLLER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct poller {
	atomic_int tid; /* 0: none as yet */
};

/* The calling thread polls; the last caller counts. */
void poller_is_me(struct poller *poller);
/* How often the calling thread has given its processor away to sleep; sched_yield() is no sleep. */
uint64_t poller_sleeps(void);
/* Does it run, or wait for a processor?  False if it sleeps, has ended, or cannot be seen. */
bool poller_wants_to_run(const struct poller *poller);

#endif
