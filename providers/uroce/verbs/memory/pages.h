/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* What the application's memory is like: questions to the kernel. */
#ifndef UROCE_VERBS_PAGES_H
#define UROCE_VERBS_PAGES_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Would length bytes at addr (not 0 bytes) be there for a device that pins them?  Faults the pages
 * in as a pin would.  0, or EFAULT: not mapped, or not writable although writable says so.
 */
int uroce_memory_check(const void *addr, size_t length, bool writable);

/* Is anything mapped at each page of these bytes?  Faults nothing in.  0 or EFAULT. */
int uroce_memory_mapped(const void *addr, size_t length);

#endif
