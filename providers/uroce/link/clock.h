/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#ifndef UROCE_LINK_CLOCK_H
#define UROCE_LINK_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Returns the time of a clock of clock_gettime(2) in nanoseconds. */
static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
