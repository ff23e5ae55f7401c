/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "aside.h"

#include "link/thread.h"

static void *run_work(void *arg)
{
	struct aside *aside = arg;

	pthread_mutex_lock(&aside->lock);
	while (aside->wanted) {
		aside->wanted = false;
		pthread_mutex_unlock(&aside->lock);
		aside->run();
		pthread_mutex_lock(&aside->lock);
	}
	aside->running = false;
	pthread_mutex_unlock(&aside->lock);
	return NULL;
}

/* Joins the thread that ran last.  Caller holds the lock, and no thread is running. */
static void join_last_thread(struct aside *aside)
{
	if (aside->joinable)
		pthread_join(aside->thread, NULL);
	aside->joinable = false;
}

void aside_want(struct aside *aside)
{
	bool run_here = false;

	pthread_mutex_lock(&aside->lock);
	aside->wanted = true;
	if (!aside->running) {
		join_last_thread(aside);
		aside->running = true;
		run_here = thread_start(&aside->thread, "uroce-work", run_work, aside) != 0;
		aside->joinable = !run_here;
	}
	pthread_mutex_unlock(&aside->lock);
	/* No thread could be started. */
	if (run_here)
		run_work(aside);
}

void aside_finish(struct aside *aside)
{
	pthread_t thread;
	bool joinable;

	pthread_mutex_lock(&aside->lock);
	thread = aside->thread;
	joinable = aside->joinable;
	aside->joinable = false;
	pthread_mutex_unlock(&aside->lock);
	if (joinable)
		pthread_join(thread, NULL);
}

void aside_forked(struct aside *aside)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	aside->lock = fresh;
	aside->wanted = false;
	aside->running = false;
	aside->joinable = false;
}
