/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Closes connections through which other users may have sent descriptors.  The caller does not wait
 * for the kernel to release these.
 */
#ifndef UROCE_BROKERD_CLOSER_H
#define UROCE_BROKERD_CLOSER_H

/* Closes *fd in another thread, unless it is negative, and sets it to -1. */
void closer_close(int *fd);

#endif
