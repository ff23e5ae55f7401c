/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Deferred work of callbacks in the progress thread (progress_watch()) that may take long, such as
 * opening an address: a separate thread does it and ends when there is no more.
 */
#ifndef UROCE_PROGRESS_BASE_WORK_H
#define UROCE_PROGRESS_BASE_WORK_H

#include <pthread.h>
#include <stdbool.h>

struct work {
	void (*run)(void); /* constant */
	pthread_mutex_t lock;
	pthread_cond_t ended; /* signalled when running becomes false */
	bool wanted;	      /* work is pending */
	bool running;	      /* a thread is running, or about to run */
	bool joinable;	      /* thread must be joined */
	pthread_t thread;
};

#define WORK_INITIALIZER(function)                                    \
	{                                                             \
		.run = (function), .lock = PTHREAD_MUTEX_INITIALIZER, \
		.ended = PTHREAD_COND_INITIALIZER                     \
	}

/*
 * Schedules the work: it runs from its beginning some time after this call, in one thread at a
 * time.  Runs it in this call if no thread can be started.
 */
void work_schedule(struct work *work);
/*
 * Waits until work scheduled before has been done.  Waits for the thread, so the caller must not
 * hold a lock that the work takes, nor one that is held while waiting for such a lock.
 */
void work_flush(struct work *work);
/* Resets the work in a forked child, where the thread does not exist. */
void work_reset_in_child(struct work *work);

#endif
