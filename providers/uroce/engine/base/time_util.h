/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Intervals in ns between two calls of the engine.  Threads read the clock before they take the
 * queue pair's lock, so a call may have an earlier time than the one before it: the interval is 0
 * then.
 */
#ifndef UROCE_ENGINE_BASE_TIME_UTIL_H
#define UROCE_ENGINE_BASE_TIME_UTIL_H

#include <stdint.h>

static inline uint64_t elapsed(uint64_t since, uint64_t now)
{
	return now > since ? now - since : 0;
}

#endif
