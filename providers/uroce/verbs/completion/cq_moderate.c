/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "cq_moderate.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "cq.h"
#include "verbs/generation.h"
#include "verbs/ops.h"

/*
 * Time after arming within which a program that arms and then polls has polled, unless it was
 * preempted.  A program that leaves CQEs in the CQ gets its event this much later.
 */
#define MISSED_EVENT_DELAY_US 1000

static void set_timer(const struct uroce_moderation *moderation, uint32_t microseconds)
{
	const struct itimerspec when = { .it_value.tv_nsec = (long)microseconds * 1000 };

	timerfd_settime(moderation->timer_fd, 0, &when, NULL);
}

bool uroce_moderate_wait(struct uroce_moderation *moderation)
{
	if (!moderation->period)
		return false;
	moderation->waiting++;
	if (moderation->count && moderation->waiting >= moderation->count) {
		/* The timer may still expire; it then finds no deferred event. */
		moderation->waiting = 0;
		return false;
	}
	if (moderation->waiting == 1)
		set_timer(moderation, moderation->period);
	return true;
}

/* Sends the deferred event, if there is one.  Called with cq->lock held. */
static void send_deferred_event(struct uroce_cq *cq)
{
	if (!cq->moderation.waiting)
		return;
	cq->moderation.waiting = 0;
	uroce_cq_send_event(cq);
}

void uroce_moderate_backlog(struct uroce_cq *cq)
{
	struct uroce_moderation *moderation = &cq->moderation;

	moderation->armed_at = progress_now();
	if (moderation->looks_for_backlog)
		return;
	moderation->looks_for_backlog = true;
	set_timer(moderation, MISSED_EVENT_DELAY_US);
}

/* Called with cq->lock held. */
static void check_missed_event(struct uroce_cq *cq)
{
	if (!cq->moderation.looks_for_backlog)
		return;
	cq->moderation.looks_for_backlog = false;
	if (cq->moderation.waiting || !uroce_cq_has_backlog(cq))
		return;
	/* The timer may have been set when the CQ was armed an earlier time. */
	if (progress_now() - cq->moderation.armed_at < MISSED_EVENT_DELAY_US * UINT64_C(500))
		uroce_moderate_backlog(cq);
	else
		uroce_cq_send_event(cq);
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
	struct uroce_moderation *moderation = &cq->moderation;
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

int uroce_moderate_prepare(struct uroce_cq *cq)
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
	if (uroce_inherited(cq->generation))
		return EIO;
	if (!(attr->attr_mask & IBV_CQ_ATTR_MODERATE))
		return 0;
	if (attr->moderate.cq_period)
		error = uroce_moderate_prepare(cq);
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

void uroce_moderate_end(struct uroce_cq *cq)
{
	if (!atomic_load(&cq->moderation.has_timer))
		return;
	/* In a forked child the progress thread and the fd that it watches are the parent's. */
	if (!uroce_inherited(cq->generation))
		progress_unwatch(cq->context->progress, cq->moderation.timer_fd);
	close(cq->moderation.timer_fd);
	atomic_store(&cq->moderation.has_timer, false);
}
