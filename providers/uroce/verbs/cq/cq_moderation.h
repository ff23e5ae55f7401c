/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Completion events, sent or deferred.  Moderation (ibv_modify_cq()): the event of an armed CQ is
 * deferred until cq_count completions have arrived, or cq_period after the first of them.  Without
 * cq_period no event is deferred, because cq_count completions may never arrive.  The event of CQEs
 * that arrived before the CQ was armed is deferred as well, to give the program time to poll them.
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

/* Sends or defers the event of a completion of an armed CQ.  cq->lock is held. */
void uroce_cq_raise_event(struct uroce_cq *cq, bool solicited);
/*
 * CQEs that no event has covered yet raise one unless they are polled soon: the application cannot
 * know whether they arrived before the CQ was armed or after (decisions/completion-events.md).
 * cq->lock is held; cq is armed.
 */
void uroce_cq_raise_missed_event(struct uroce_cq *cq);
/* Creates the timer if there is none.  Returns 0 or a positive errno.  Called without cq->lock. */
int uroce_cq_create_timer(struct uroce_cq *cq);
/* Destroys the timer.  Called without cq->lock. */
void uroce_cq_destroy_timer(struct uroce_cq *cq);

#endif
