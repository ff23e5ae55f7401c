/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Events that wait.  Moderation (ibv_modify_cq): the event of an armed CQ waits until so many
 * completions have come, or so much time has passed since the first of them.  Without a time
 * nothing waits, because no number of completions is sure to come.  And the event of completions
 * that were there before the arming waits for the program to poll them.
 */
#ifndef UROCE_VERBS_CQ_MODERATE_H
#define UROCE_VERBS_CQ_MODERATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct uroce_cq;

/* Part of a CQ, under its lock.  All zero: no moderation. */
struct uroce_moderation {
	uint16_t count;		/* completions; 0: only time counts */
	uint16_t period;	/* microseconds; 0: no moderation */
	uint32_t waiting;	/* completions since the first that would have made an event */
	uint64_t armed_at;	/* with a backlog: ns */
	bool looks_for_backlog; /* the timer runs for it */
	atomic_bool has_timer;	/* set once */
	int timer_fd;
};

/* A completion of an armed CQ: does its event have to wait?  Caller holds the CQ's lock. */
bool uroce_moderate_wait(struct uroce_moderation *moderation);
/* The timer, if there is none yet: for cq's backlog.  0 or a positive errno.  Not under its lock.
 */
int uroce_moderate_prepare(struct uroce_cq *cq);
/*
 * The CQ was armed with completions that no event has told of: they make one unless they are polled
 * within a moment.  Caller holds the CQ's lock.
 */
void uroce_moderate_backlog(struct uroce_cq *cq);
/* The end of a CQ: no timer runs any more.  Not under its lock. */
void uroce_moderate_end(struct uroce_cq *cq);

#endif
