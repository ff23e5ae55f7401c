/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What an application is answered.  The manual pages promise an errno value as the result of most
 * calls; but adapters' drivers set errno as well, since they ask the kernel, and programs rely on
 * it: perror(), "%m".  A call that succeeds leaves errno alone, whatever happened on its way.
 *
 * And it is answered whole: programs end threads by pthread_cancel(), the calls of libc that verbs
 * make are cancellation points, and a thread that ended there would leave locks behind.
 */
#ifndef UROCE_VERBS_ANSWER_H
#define UROCE_VERBS_ANSWER_H

#include <errno.h>
#include <pthread.h>

/* The value of call, 0 or a positive errno, which is then in errno, too. */
#define UROCE_ANSWER(call)                            \
	({                                            \
		int before_ = errno, error_ = (call); \
		errno = error_ ? error_ : before_;    \
		error_;                               \
	})

/* The value of call, in which the thread is not cancelled. */
#define UROCE_WHOLE(call)                                                 \
	({                                                                \
		int cancel_;                                              \
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_); \
		__typeof__(call) value_ = (call);                         \
		pthread_setcancelstate(cancel_, NULL);                    \
		value_;                                                   \
	})

#endif
