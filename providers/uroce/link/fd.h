/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Sockets, descriptors, messages for the user, the overflow UID, clocks */
#ifndef UROCE_LINK_FD_H
#define UROCE_LINK_FD_H

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "link.h"

/*
 * Creates a socket, close-on-exec and non-blocking.  If the process has no descriptor left, the
 * soft limit of open files is raised by a step.  Returns the descriptor or a negative errno.
 */
int link_socket(int family, int type);
/* Sets an integer option by setsockopt(2).  Returns 0 or a negative errno. */
int link_set_option(int fd, int level, int option, int value);
/* Raises the soft limit of open files by a step.  Returns -EMFILE if it is at the hard limit. */
int link_raise_fd_limit(void);
/* Closes *fd unless it is negative, and sets it to -1. */
void link_close_fd(int *fd);
/* Prints one line into error (which may be NULL), truncated if it does not fit. */
__attribute__((format(printf, 2, 3))) void link_set_error(char error[LINK_ERROR_TEXT],
							  const char *format, ...);
/* Returns the overflow UID, which stands for every user that a user namespace does not map. */
uid_t link_overflow_uid(void);
/* Returns CLOCK_MONOTONIC in milliseconds. */
int64_t link_now_ms(void);

/* Returns the time of a clock of clock_gettime(2) in nanoseconds. */
static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Returns the time on the clock in ns from now, for functions that wait until a time. */
static inline struct timespec clock_after(clockid_t clock, uint64_t ns)
{
	uint64_t until = clock_ns(clock) + ns;

	return (struct timespec){
		.tv_sec = (time_t)(until / 1000000000u),
		.tv_nsec = (long)(until % 1000000000u),
	};
}

#endif
