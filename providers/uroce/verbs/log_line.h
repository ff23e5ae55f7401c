/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Used by the plug-in and by the drop-in library. */
#ifndef UROCE_VERBS_LOG_LINE_H
#define UROCE_VERBS_LOG_LINE_H

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

/*
 * Prints a line with the prefix "uroce: ".  If the reader of stderr has gone the line is dropped,
 * and SIGPIPE is suppressed because it would end the program.  Keeps errno.
 */
static inline void uroce_stderr_line(const char *line)
{
	const struct timespec now = { 0 };
	sigset_t pipe, before, pending;
	int saved = errno;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, &before);
	sigpending(&pending);
	/* A single call, so that lines of several threads do not mix. */
	fprintf(stderr, "uroce: %s\n", line);
	/*
	 * Discard the SIGPIPE that was raised for this thread; one that was pending before is the
	 * application's.
	 */
	if (!sigismember(&pending, SIGPIPE))
		while (sigtimedwait(&pipe, NULL, &now) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = saved;
}

#endif
