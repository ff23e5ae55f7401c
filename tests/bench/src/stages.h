/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * When a message passes which point between two processes, which read the same clock.
 *
 * The client notes when it begins to post and when the call returns, the server when the call began
 * that found the message, and when it had it.
 */
#ifndef BENCH_STAGES_H
#define BENCH_STAGES_H

#include <stdint.h>

#define STAGES_MESSAGES 20000
/* Not reported: caches and the other side are still cold. */
#define STAGES_WARM_UP 2000

enum { STAGE_POST, STAGE_POSTED, STAGE_LOOK, STAGE_FOUND, STAGES };

struct stages {
	uint64_t at[STAGES_MESSAGES][STAGES]; /* ns */
	uint64_t empty_ns;		      /* how long a look takes that finds nothing */
};

/* Shared between the processes that are forked afterwards. */
struct stages *stages_open(void);

/* Time of one call, the minimum of several averages, to exclude interrupts. */
uint64_t stages_time_ns(void (*call)(void *arg), void *arg);

/* Prints medians, and what reading the clock costs, which is in each of them once. */
void stages_report(const struct stages *stages);

#endif
