/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Faster time, for tests of timeouts: as many checks and tries as in reality, but each wait is a
 * fraction of its length, and the clock runs accordingly faster.  Only for waits by poll(2).
 * Included by one file of a program, which then uses these functions in place of the system's.
 */
#ifndef UROCE_TESTS_UNIT_OWN_TIME_H
#define UROCE_TESTS_UNIT_OWN_TIME_H

#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Factors of this process, and of those that it forks from now on. */
static int own_haste = 1, own_haste_of_children = 1;
/* When the former was changed. */
static int64_t own_since;

static int64_t own_real_ns(clockid_t clock)
{
	struct timespec time;

	syscall(SYS_clock_gettime, clock, &time);
	return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int clock_gettime(clockid_t clock, struct timespec *time);

int clock_gettime(clockid_t clock, struct timespec *time)
{
	int64_t now = own_real_ns(clock);

	if (clock == CLOCK_MONOTONIC)
		now = own_since + (now - own_since) * own_haste;
	time->tv_sec = (time_t)(now / 1000000000);
	time->tv_nsec = (long)(now % 1000000000);
	return 0;
}

int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	int64_t ns = (int64_t)timeout_ms * 1000000 / own_haste;
	struct timespec timeout = { .tv_sec = (time_t)(ns / 1000000000),
				    .tv_nsec = (long)(ns % 1000000000) };

	return ppoll(fds, count, timeout_ms < 0 ? NULL : &timeout, NULL);
}

/* For this process; no thread of it may be in a wait.  With 1 the clock is the kernel's again. */
static void own_time_set(int haste)
{
	own_since = own_real_ns(CLOCK_MONOTONIC);
	own_haste = haste;
}

static void own_time_of_child(void)
{
	own_time_set(own_haste_of_children);
}

/* Before the first fork. */
static void own_time_begin(void)
{
	pthread_atfork(NULL, NULL, own_time_of_child);
}

#endif
