/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "thread.h"

#include <signal.h>

#define STACK_BYTES (256 * 1024)

int thread_start(pthread_t *thread, const char *name, void *(*function)(void *arg), void *arg)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int error;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	/* The application's signals are for the application's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(thread, &attr, function, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	/* From here, so that it has its name from the start. */
	if (!error)
		pthread_setname_np(*thread, name);
	return -error;
}
