/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "poller.h"

#include <sys/resource.h>

uint64_t poller_sleeps(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) ? 0 : (uint64_t)usage.ru_nvcsw;
}
