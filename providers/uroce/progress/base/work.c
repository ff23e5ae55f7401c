/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "work.h"

#include "link/thread.h"

static void *run_work(void *arg)
{
	struct work *work = arg;

	pthread_mutex_lock(&work->lock);
	while (work->wanted) {
		work->wanted = false;
		pthread_mutex_unlock(&work->lock);
		work->run();
		pthread_mutex_lock(&work->lock);
	}
	work->running = false;
	pthread_cond_broadcast(&work->ended);
	pthread_mutex_unlock(&work->lock);
	return NULL;
}

/* Joins the thread that ran last.  Caller holds the lock, and no thread is running. */
static void join_last_thread(struct work *work)
{
	if (work->joinable)
		pthread_join(work->thread, NULL);
	work->joinable = false;
}

void work_schedule(struct work *work)
{
	bool run_here = false;

	pthread_mutex_lock(&work->lock);
	work->wanted = true;
	if (!work->running) {
		join_last_thread(work);
		work->running = true;
		run_here = thread_start(&work->thread, "uroce-work", run_work, work) != 0;
		work->joinable = !run_here;
	}
	pthread_mutex_unlock(&work->lock);
	/* No thread could be started. */
	if (run_here)
		run_work(work);
}

void work_flush(struct work *work)
{
	pthread_mutex_lock(&work->lock);
	while (work->running)
		pthread_cond_wait(&work->ended, &work->lock);
	join_last_thread(work);
	pthread_mutex_unlock(&work->lock);
}

void work_reset_in_child(struct work *work)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
	static const pthread_cond_t fresh_ended = PTHREAD_COND_INITIALIZER;

	work->lock = fresh;
	work->ended = fresh_ended;
	work->wanted = false;
	work->running = false;
	work->joinable = false;
}
