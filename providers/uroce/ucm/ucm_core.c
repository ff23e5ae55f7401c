/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "ucm_core.h"

#include <pthread.h>
#include <string.h>

#include "link/fd.h"
#include "ucm/conn/connect_retry.h"
#include "ucm/conn/connection.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int saved_cancel_state;

/*
 * Held around calls that wait for other processes.  Taken before the lock, and never by a callback.
 * Variables that are under both locks are written with both held.
 */
static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static struct gsi *gsi; /* under both locks, like cm, credits_reported */
static struct cm *cm;
static bool credits_reported;

/* Deadline set in gsi; under the lock. */
static uint64_t armed_deadline = CM_NEVER;

void ucm_api_lock(void)
{
	ucm_disable_cancel();
	ucm_lock();
}

void ucm_api_unlock(void)
{
	ucm_unlock();
	pthread_setcancelstate(saved_cancel_state, NULL);
}

void ucm_disable_cancel(void)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &saved_cancel_state);
}

int ucm_saved_cancel_state(void)
{
	return saved_cancel_state;
}

void ucm_lock(void)
{
	pthread_mutex_lock(&lock);
}

void ucm_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

bool ucm_lock_with_timeout(unsigned int ms)
{
	const struct timespec until = clock_after(CLOCK_REALTIME, ms * UINT64_C(1000000));

	return pthread_mutex_timedlock(&lock, &until) == 0;
}

void ucm_start_lock(void)
{
	pthread_mutex_lock(&start_lock);
}

void ucm_start_unlock(void)
{
	pthread_mutex_unlock(&start_lock);
}

void ucm_set_cm(struct cm *new_cm, struct gsi *new_gsi, bool reports_credits)
{
	cm = new_cm;
	gsi = new_gsi;
	credits_reported = reports_credits;
	armed_deadline = CM_NEVER;
}

struct cm *ucm_cm(void)
{
	return cm;
}

struct gsi *ucm_gsi(void)
{
	return gsi;
}

bool ucm_reports_credits(void)
{
	return credits_reported;
}

void ucm_rearm_timer(void)
{
	uint64_t next = cm_deadline(cm);

	if (ucm_retries_deadline() < next)
		next = ucm_retries_deadline();
	if (ucm_orphans_deadline() < next)
		next = ucm_orphans_deadline();
	if (next == armed_deadline)
		return;
	armed_deadline = next;
	gsi_deadline(gsi, next == CM_NEVER ? ENG_NEVER : next);
}

void ucm_timer_expired(void)
{
	armed_deadline = CM_NEVER;
}

uint32_t ucm_scope_id_of(const uint8_t *gid, uint32_t device)
{
	return gid_is_link_local(gid) ? device : 0;
}

void ucm_gsi_path(const struct cm_path *path, struct gsi_path *to)
{
	*to = (struct gsi_path){
		.scope_id = ucm_scope_id_of(path->dgid, path->device),
		.traffic_class = path->traffic_class,
	};
	memcpy(to->sgid, path->sgid, sizeof(to->sgid));
	memcpy(to->dgid, path->dgid, sizeof(to->dgid));
}

void ucm_core_forked(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	ucm_set_cm(NULL, NULL, false);
	start_lock = fresh;
}
