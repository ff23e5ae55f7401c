/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* State of the application's memory according to the kernel. */
#ifndef UROCE_VERBS_PAGES_H
#define UROCE_VERBS_PAGES_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Returns 0 if a device could pin length bytes (not 0) at addr, or EFAULT if they are not mapped,
 * or not writable although writable is set.  Faults the pages in as pinning would.
 */
int uroce_memory_check(const void *addr, size_t length, bool writable);

/* Returns 0 if all pages of the bytes are mapped, else EFAULT.  Does not fault pages in. */
int uroce_memory_mapped(const void *addr, size_t length);

#endif
