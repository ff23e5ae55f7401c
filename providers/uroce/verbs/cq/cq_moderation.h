/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Deferred completion events.  Moderation (ibv_modify_cq()): the event of an armed CQ is deferred
 * until cq_count completions have arrived, or cq_period after the first of them.  Without cq_period
 * no event is deferred, because cq_count completions may never arrive.  The event of CQEs that
 * arrived before the CQ was armed is deferred as well, to give the program time to poll them.
 */
#ifndef UROCE_VERBS_CQ_MODERATION_H
#define UROCE_VERBS_CQ_MODERATION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct uroce_cq;

/* Part of struct uroce_cq, under its lock.  All zero: no moderation. */
struct uroce_cq_moderation {
	uint16_t count;		     /* cq_count: completions; 0: no limit */
	uint16_t period;	     /* cq_period: microseconds; 0: no moderation */
	uint32_t deferred;	     /* number of completions whose event is deferred */
	uint64_t armed_at;	     /* time in ns when the CQ was last armed with uncovered CQEs */
	bool missed_event_timer_set; /* the timer runs for uncovered CQEs */
	atomic_bool has_timer;	     /* timer_fd is valid */
	int timer_fd;
};

/* Returns true if the event of a completion of an armed CQ is deferred.  cq->lock is held. */
bool uroce_cq_defer_event(struct uroce_cq_moderation *moderation);
/* Creates the timer if there is none.  Returns 0 or a positive errno.  Called without cq->lock. */
int uroce_cq_create_timer(struct uroce_cq *cq);
/*
 * The CQ was armed while it had CQEs that no event has covered: raises an event unless they are
 * polled within 1 ms.  cq->lock is held; the CQ has a timer.
 */
void uroce_cq_schedule_missed_event(struct uroce_cq *cq);
/* Destroys the timer.  Called without cq->lock. */
void uroce_cq_destroy_timer(struct uroce_cq *cq);

#endif
