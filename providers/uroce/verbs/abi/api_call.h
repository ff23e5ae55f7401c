/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Wrappers around the implementation of API calls.
 *
 * The manual pages promise an errno value as the result of most calls; but the drivers of adapters
 * set errno as well, because they make system calls, and programs rely on that: perror(), "%m".  A
 * call that succeeds leaves errno unchanged.
 *
 * API calls are not cancellation points, although the libc functions that they call are: a thread
 * that pthread_cancel() ended there would leave locks held.
 */
#ifndef UROCE_VERBS_ABI_API_CALL_H
#define UROCE_VERBS_ABI_API_CALL_H

#include <errno.h>
#include <pthread.h>

/* Returns the value of call, which is 0 or a positive errno, and sets errno if it is not 0. */
#define UROCE_SET_ERRNO(call)                         \
	({                                            \
		int before_ = errno, error_ = (call); \
		errno = error_ ? error_ : before_;    \
		error_;                               \
	})

/* Returns the value of call, during which the thread cannot be cancelled. */
#define UROCE_NO_CANCEL(call)                                             \
	({                                                                \
		int cancel_;                                              \
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_); \
		__typeof__(call) value_ = (call);                         \
		pthread_setcancelstate(cancel_, NULL);                    \
		value_;                                                   \
	})

#endif
