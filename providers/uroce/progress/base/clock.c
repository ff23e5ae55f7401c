/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "clock.h"

#include <time.h>

uint64_t progress_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
