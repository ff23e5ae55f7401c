/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Closes what strangers have put something into, so that no other thread waits for what the kernel
 * does then.
 */
#ifndef UROCE_LINK_CLOSER_H
#define UROCE_LINK_CLOSER_H

#include <stdbool.h>

/* Before the first one is to be closed, while there are descriptors to be had. */
void link_closer_get_ready(void);
/* Close *fd, unless it is negative, soon, and make it -1. */
void link_close_aside(int *fd);
/*
 * Is there room for as many as one call of link_accept() may turn away, and others'?  One that
 * finds none is closed at once, however long that takes.
 */
bool link_closer_has_room(void);
/* Wait until all of that is done, as a test does that looks for what is left over. */
void link_close_aside_end(void);

/* Handlers for fork(2); the child closes what was to be closed.  Its lock is the innermost. */
void link_closer_fork_prepare(void);
void link_closer_fork_parent(void);
void link_closer_fork_child(void);

#endif
