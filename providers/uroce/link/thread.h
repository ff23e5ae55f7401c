/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Threads of the provider.  They block all signals except those that report a fault of the thread
 * itself, such as SIGSEGV; all others go to the application's threads.
 */
#ifndef UROCE_LINK_THREAD_H
#define UROCE_LINK_THREAD_H

#include <pthread.h>

/*
 * Starts a thread with this name, at most 15 bytes.  Returns 0 or a negative errno.  A thread that
 * detaches itself must not end before this function returns, which sets the name.
 */
int thread_start(pthread_t *thread, const char *name, void *(*function)(void *arg), void *arg);

#endif
