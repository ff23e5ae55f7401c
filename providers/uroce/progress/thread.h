/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Threads of our own: signals are left to the application's threads.
 */
#ifndef UROCE_PROGRESS_THREAD_H
#define UROCE_PROGRESS_THREAD_H

#include <pthread.h>

/* 0 or a negative errno. */
int thread_start(pthread_t *thread, const char *name, void *(*function)(void *arg), void *arg);

#endif
