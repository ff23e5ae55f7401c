/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Times at which a message passes points on its way between two processes, which read the same
 * clock.
 *
 * The client stores the times before and after the call that posts the message, the server those
 * before and after the call that receives it.
 */
#ifndef BENCH_STAGES_H
#define BENCH_STAGES_H

#include <stdint.h>

#define STAGES_MESSAGES 20000
/* Number of first messages, which are not reported: caches and the other side are still cold. */
#define STAGES_WARM_UP 2000

enum { STAGE_POST, STAGE_POSTED, STAGE_LOOK, STAGE_FOUND, STAGES };

struct stages {
	uint64_t at[STAGES_MESSAGES][STAGES]; /* ns */
	uint64_t empty_ns;		      /* time of a call that finds no message */
};

/* Returns memory that is shared with processes that are forked afterwards. */
struct stages *stages_open(void);

/* Time of one call, the minimum of several averages, to exclude interrupts. */
uint64_t stages_time_ns(void (*call)(void *arg), void *arg);

/* Prints medians, and the time to read the clock, which each median includes once. */
void stages_report(const struct stages *stages);

#endif
