/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#ifndef UROCE_PROGRESS_BASE_CLOCK_H
#define UROCE_PROGRESS_BASE_CLOCK_H

#include <stdint.h>

/* Returns CLOCK_MONOTONIC in nanoseconds, the only clock of uroce. */
uint64_t progress_now(void);

#endif
