/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "thread.h"

#include <signal.h>

#define STACK_BYTES (256 * 1024)

/*
 * Signals that an instruction raises in its own thread.  Blocked, they end the process without a
 * call of the handler: that of a program, or the one by which a sanitizer reports.
 */
static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };

int thread_start(pthread_t *thread, const char *name, void *(*function)(void *arg), void *arg)
{
	sigset_t blocked, before;
	pthread_attr_t attr;
	int error;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	/* The application's signals are for the application's threads. */
	sigfillset(&blocked);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(&blocked, faults[i]);
	pthread_sigmask(SIG_SETMASK, &blocked, &before);
	error = pthread_create(thread, &attr, function, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	/* From here, so that it has its name from the start. */
	if (!error)
		pthread_setname_np(*thread, name);
	return -error;
}
