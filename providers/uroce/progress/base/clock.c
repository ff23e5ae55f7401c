/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "progress/progress.h"

#include "link/fd.h"

uint64_t progress_now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}
