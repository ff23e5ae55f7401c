/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Work that a callback in the helper thread (progress_watch()) has come upon, and that may take
 * long, such as opening an address: a thread of its own does it, and ends when there is no more.
 */
#ifndef UROCE_PROGRESS_ASIDE_H
#define UROCE_PROGRESS_ASIDE_H

#include <pthread.h>
#include <stdbool.h>

struct aside {
	void (*work)(void); /* constant */
	pthread_mutex_t lock;
	bool wanted;   /* the work has to be done, or done again */
	bool running;  /* a thread looks after that */
	bool joinable; /* there has been a thread, */
	pthread_t thread;
};

#define ASIDE_INITIALIZER(function)                                   \
	{                                                             \
		.work = (function), .lock = PTHREAD_MUTEX_INITIALIZER \
	}

/*
 * Let the work be done, from its beginning, some time after this call, and never by two at a time;
 * in this call when no thread can be started.
 */
void aside_want(struct aside *aside);
/*
 * After return what was wanted before is done.  Waits for the thread, so it is called under no lock
 * that the work takes, nor under one that is held while such a lock is waited for.
 */
void aside_finish(struct aside *aside);
/* In a forked child: the thread is the parent's. */
void aside_forked(struct aside *aside);

#endif
