/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Clock of a test and of the processes that it forks.  The test can advance it, for decisions that
 * depend on the clock; poll() and similar calls still wait in real time.  To be included by one
 * file of a program: its clock_gettime() replaces the system's.
 */
#ifndef UROCE_TESTS_UNIT_MOCK_CLOCK_H
#define UROCE_TESTS_UNIT_MOCK_CLOCK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* Offset in nanoseconds, in memory that is shared with the forked processes. */
static atomic_int_fast64_t *mock_clock_offset;

int clock_gettime(clockid_t clock, struct timespec *time);

int clock_gettime(clockid_t clock, struct timespec *time)
{
	long result = syscall(SYS_clock_gettime, clock, time);
	int64_t ns;

	if (result || clock != CLOCK_MONOTONIC || !mock_clock_offset)
		return (int)result;
	ns = time->tv_nsec + atomic_load(mock_clock_offset);
	time->tv_sec += (time_t)(ns / 1000000000);
	time->tv_nsec = (long)(ns % 1000000000);
	return 0;
}

/* Must be called before the first fork(). */
static void mock_clock_start(void)
{
	void *page = mmap(NULL, sizeof(*mock_clock_offset), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(page != MAP_FAILED);
	mock_clock_offset = page;
}

static void mock_clock_advance_ms(int64_t ms)
{
	atomic_fetch_add(mock_clock_offset, ms * 1000000);
}

#endif
