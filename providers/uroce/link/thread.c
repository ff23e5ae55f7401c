/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "thread.h"

#include <signal.h>

#define STACK_BYTES (256 * 1024)

/*
 * Signals that an instruction raises in its own thread.  If they are blocked, they end the process
 * without calling the handler of the program or of a sanitizer.
 */
static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };

int thread_start(pthread_t *thread, const char *name, void *(*function)(void *arg), void *arg)
{
	sigset_t blocked, before;
	pthread_attr_t attr;
	int error;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	/* The application's signals must go to the application's threads. */
	sigfillset(&blocked);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(&blocked, faults[i]);
	pthread_sigmask(SIG_SETMASK, &blocked, &before);
	error = pthread_create(thread, &attr, function, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	/* Set by this thread, so that the name is valid when thread_start() returns. */
	if (!error)
		pthread_setname_np(*thread, name);
	return -error;
}
