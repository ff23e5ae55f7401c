/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Library to preload into a program that runs under callgrind and polls all the time.  Its
 * monotonic clock is its processor time, slowed down as much as callgrind slows down the program,
 * and sleeps by that clock are as much longer.  So what the transport does by time (ACKs that wait
 * for a reply, probes, the helper's checks, detection of consecutive polls) happens as often for
 * each message as without callgrind, even if other processes use the processors.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Factor in callgrind's documentation, and as measured with two processes of ib_send_lat. */
#define SLOWER 50
#define SECOND_NS UINT64_C(1000000000)
/* The clock starts here, because that of a real host does not start at 0. */
#define START_NS (1000 * SECOND_NS)
#define MOST_ARGUMENTS 6
/* Index of the time-out among the arguments of epoll_pwait2(). */
#define TIMEOUT 3

typedef long (*system_call)(long number, ...);

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *time);
__attribute__((visibility("default"))) long syscall(long number, ...);

static system_call next;

static __attribute__((constructor)) void find_next(void)
{
	next = (system_call)dlsym(RTLD_NEXT, "syscall");
}

static uint64_t ns_of(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * SECOND_NS + (uint64_t)time->tv_nsec;
}

static struct timespec time_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / SECOND_NS),
				  .tv_nsec = (long)(ns % SECOND_NS) };
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
	bool ours = clock == CLOCK_MONOTONIC;
	long result = syscall(SYS_clock_gettime, ours ? CLOCK_PROCESS_CPUTIME_ID : clock, time);

	if (result == 0 && ours)
		*time = time_of(START_NS + ns_of(time) / SLOWER);
	return (int)result;
}

/* Replaces that of libc: the helper thread sleeps in epoll_pwait2(), which it calls by number. */
long syscall(long number, ...)
{
	long argument[MOST_ARGUMENTS];
	struct timespec longer;
	va_list list;

	va_start(list, number);
	for (int i = 0; i < MOST_ARGUMENTS; i++)
		argument[i] = va_arg(list, long);
	va_end(list);
	if (!next)
		find_next();
#ifdef SYS_epoll_pwait2
	if (number == SYS_epoll_pwait2 && argument[TIMEOUT]) {
		const struct timespec *timeout = (const struct timespec *)argument[TIMEOUT];

		/* Processor time lags behind: twice as long, in order not to wake up too early. */
		longer = time_of(2 * ns_of(timeout) * SLOWER);
		argument[TIMEOUT] = (long)&longer;
	}
#endif
	return next(number, argument[0], argument[1], argument[2], argument[3], argument[4],
		    argument[5]);
}
