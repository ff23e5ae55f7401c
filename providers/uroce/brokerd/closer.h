/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Closes connections into which strangers may have put descriptors.  The broker does not wait while
 * the kernel releases these.
 */
#ifndef UROCE_BROKERD_CLOSER_H
#define UROCE_BROKERD_CLOSER_H

/* Closes *fd, unless it is negative, soon, and makes it -1. */
void closer_close(int *fd);

#endif
