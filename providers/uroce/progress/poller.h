/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The thread that polls in vain.  Who looks for packets in its place must not keep it from a
 * processor.
 */
#ifndef UROCE_PROGRESS_POLLER_H
#define UROCE_PROGRESS_POLLER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct poller {
	atomic_int tid; /* 0: nobody as yet */
};

/* The calling thread polls; who said so last counts. */
void poller_is_me(struct poller *poller);
/* How often the calling thread has given its processor away to sleep; sched_yield() is no sleep. */
uint64_t poller_sleeps(void);
/* Does it run, or wait for a processor?  Not if it sleeps, has ended, or nobody can tell. */
bool poller_wants_to_run(const struct poller *poller);

#endif
