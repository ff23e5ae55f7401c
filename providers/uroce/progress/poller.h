/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A thread that polls in vain, as the kernel sees it: does it sleep between its polls?
 */
#ifndef UROCE_PROGRESS_POLLER_H
#define UROCE_PROGRESS_POLLER_H

#include <stdint.h>

/* How often the calling thread has given its processor away to sleep; sched_yield() is no sleep. */
uint64_t poller_sleeps(void);

#endif
