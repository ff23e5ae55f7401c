/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#ifndef UROCE_PROGRESS_CLOCK_H
#define UROCE_PROGRESS_CLOCK_H

#include <stdint.h>

/* Monotonic nanoseconds: the only clock. */
uint64_t progress_now(void);

#endif
