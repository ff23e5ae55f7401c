/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * To be loaded before a program that runs under callgrind: its monotonic clock goes slower by what
 * callgrind makes the program slower.  So what the transport does by the clock (an ACK that waits
 * for an answer, a probe, the helper's looks) happens as often for each message as without
 * callgrind.
 */
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* callgrind's own documentation says 50, and so does ib_send_lat between two of them. */
#define SLOWER 50
#define SECOND_NS UINT64_C(1000000000)

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *time);

int clock_gettime(clockid_t clock, struct timespec *time)
{
	long result = syscall(SYS_clock_gettime, clock, time);

	if (result == 0 && clock == CLOCK_MONOTONIC) {
		uint64_t ns =
			((uint64_t)time->tv_sec * SECOND_NS + (uint64_t)time->tv_nsec) / SLOWER;

		time->tv_sec = (time_t)(ns / SECOND_NS);
		time->tv_nsec = (long)(ns % SECOND_NS);
	}
	return (int)result;
}
