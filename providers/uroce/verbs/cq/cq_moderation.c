/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "cq_moderation.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "cq.h"
#include "verbs/fork.h"
#include "verbs/abi/ops.h"

/*
 * Delay of the event of CQEs that were in the CQ when it was armed.  A program that polls after
 * arming has polled them by then, unless it was preempted.
 */
#define MISSED_EVENT_DELAY_US 1000

static void set_timer(const struct uroce_cq_moderation *moderation, uint32_t microseconds)
{
	const struct itimerspec when = { .it_value.tv_nsec = (long)microseconds * 1000 };

	timerfd_settime(moderation->timer_fd, 0, &when, NULL);
}

/* Returns true if the event of a completion is deferred.  Called with cq->lock held. */
static bool defer_event(struct uroce_cq_moderation *moderation)
{
	if (!moderation->period)
		return false;
	moderation->deferred++;
	if (moderation->count && moderation->deferred >= moderation->count) {
		/* The timer may still expire; it then finds no deferred event. */
		moderation->deferred = 0;
		return false;
	}
	if (moderation->deferred == 1)
		set_timer(moderation, moderation->period);
	return true;
}

/* Sends an event to the channel and disarms the CQ.  Called with cq->lock held. */
static void send_event(struct uroce_cq *cq)
{
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);

	/* An event covers one completion, or all of them if the CQ has moderation. */
	if (cq->moderation.period)
		cq->notified_idx = head;
	else if (cq->notified_idx != head)
		cq->notified_idx++;
	/* One event for each arming: ibv_req_notify_cq(3). */
	cq->notify = UROCE_NOTIFY_NONE;
	if (cq->channel)
		uroce_channel_event(cq->channel, cq);
}

void uroce_cq_raise_event(struct uroce_cq *cq, bool solicited)
{
	if (cq->notify == UROCE_NOTIFY_SOLICITED && !solicited)
		return;
	if (!defer_event(&cq->moderation))
		send_event(cq);
}

/* Sends the deferred event, if there is one.  Called with cq->lock held. */
static void send_deferred_event(struct uroce_cq *cq)
{
	if (!cq->moderation.deferred)
		return;
	cq->moderation.deferred = 0;
	send_event(cq);
}

/*
 * Arm race: completions between the last poll and ibv_req_notify_cq().  Returns true if cq is armed
 * and has CQEs that no event has covered.  cq->lock is held.
 */
static bool has_unnotified(const struct uroce_cq *cq)
{
	uint32_t last = cq->notify == UROCE_NOTIFY_ANY
				? atomic_load_explicit(&cq->head, memory_order_relaxed)
				: cq->solicited_idx;

	return cq->notify != UROCE_NOTIFY_NONE && uroce_cq_is_after(last, cq->notified_idx);
}

/* Called with cq->lock held, if the CQ has a timer. */
static void schedule_missed_event(struct uroce_cq *cq)
{
	struct uroce_cq_moderation *moderation = &cq->moderation;

	moderation->armed_at = progress_now();
	if (moderation->missed_event_timer_set)
		return;
	moderation->missed_event_timer_set = true;
	set_timer(moderation, MISSED_EVENT_DELAY_US);
}

void uroce_cq_raise_missed_event(struct uroce_cq *cq)
{
	if (!cq->channel || cq->moderation.deferred || !has_unnotified(cq))
		return;
	if (cq->moderation.period || !atomic_load(&cq->moderation.has_timer))
		uroce_cq_raise_event(cq, true);
	else
		schedule_missed_event(cq);
}

/* Called with cq->lock held. */
static void check_missed_event(struct uroce_cq *cq)
{
	if (!cq->moderation.missed_event_timer_set)
		return;
	cq->moderation.missed_event_timer_set = false;
	if (cq->moderation.deferred || !has_unnotified(cq))
		return;
	/* The timer may be that of an earlier arming: wait again if the last arming is recent. */
	if (progress_now() - cq->moderation.armed_at < MISSED_EVENT_DELAY_US * UINT64_C(500))
		schedule_missed_event(cq);
	else
		send_event(cq);
}

/* Runs in the progress thread, without locks. */
static void handle_timer(void *arg)
{
	struct uroce_cq *cq = arg;
	uint64_t expirations;

	if (read(cq->moderation.timer_fd, &expirations, sizeof(expirations)) != sizeof(expirations))
		return;
	pthread_mutex_lock(&cq->lock);
	send_deferred_event(cq);
	check_missed_event(cq);
	pthread_mutex_unlock(&cq->lock);
}

static int create_timer(struct uroce_cq *cq)
{
	struct uroce_cq_moderation *moderation = &cq->moderation;
	int error = 0;

	if (atomic_load(&moderation->has_timer))
		return 0;
	moderation->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (moderation->timer_fd < 0)
		return errno;
	error = -progress_watch(cq->context->progress, moderation->timer_fd, handle_timer, cq);
	if (error)
		close(moderation->timer_fd);
	atomic_store(&moderation->has_timer, !error);
	return error;
}

int uroce_cq_create_timer(struct uroce_cq *cq)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* one timer for each CQ */
	int error;

	pthread_mutex_lock(&lock);
	error = create_timer(cq);
	pthread_mutex_unlock(&lock);
	return error;
}

int uroce_modify_cq(struct ibv_cq *ibv_cq, struct ibv_modify_cq_attr *attr)
{
	struct uroce_cq *cq = to_uroce_cq(ibv_cq);
	int error = 0;

	if (attr->attr_mask & ~(uint32_t)IBV_CQ_ATTR_MODERATE)
		return EINVAL;
	if (uroce_is_stale(cq->generation))
		return EIO;
	if (!(attr->attr_mask & IBV_CQ_ATTR_MODERATE))
		return 0;
	if (attr->moderate.cq_period)
		error = uroce_cq_create_timer(cq);
	if (error)
		return error;
	pthread_mutex_lock(&cq->lock);
	cq->moderation.count = attr->moderate.cq_count;
	cq->moderation.period = attr->moderate.cq_period;
	/* A deferred event is sent now, since the new limits may allow less delay. */
	send_deferred_event(cq);
	pthread_mutex_unlock(&cq->lock);
	return 0;
}

void uroce_cq_destroy_timer(struct uroce_cq *cq)
{
	if (!atomic_load(&cq->moderation.has_timer))
		return;
	/* In a forked child the progress thread and the fd that it watches are the parent's. */
	if (!uroce_is_stale(cq->generation))
		progress_unwatch(cq->context->progress, cq->moderation.timer_fd);
	close(cq->moderation.timer_fd);
	atomic_store(&cq->moderation.has_timer, false);
}
