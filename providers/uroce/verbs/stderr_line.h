/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * For the plug-in and for the drop-in.
 */
#ifndef UROCE_VERBS_STDERR_LINE_H
#define UROCE_VERBS_STDERR_LINE_H

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

/*
 * Say a line, beginning with our name.  When stderr is not read any more the line is lost;
 * otherwise SIGPIPE would end the program for a remark of ours.  errno stays as it is.
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
	/* One call, so that lines of several threads do not mix. */
	fprintf(stderr, "uroce: %s\n", line);
	/* It has come to this thread; one that had been waiting before is the application's. */
	if (!sigismember(&pending, SIGPIPE))
		while (sigtimedwait(&pipe, NULL, &now) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = saved;
}

#endif
