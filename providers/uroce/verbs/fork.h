/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A forked child has the objects of its parent but none of its threads: locks that other threads
 * held at that moment stay locked, and the sockets are the parent's.  So every object records the
 * process generation in which it was created.  In a child, an object of an older generation takes
 * no lock and uses no socket: it can only be destroyed, and all other calls fail.
 */
#ifndef UROCE_VERBS_FORK_H
#define UROCE_VERBS_FORK_H

#include <stdbool.h>

/*
 * Generation of this process; never UROCE_GEN_STOPPED (context_objects.h).  Changed only in a
 * child, by the fork handlers (context/fork_handlers.c), while it has one thread.
 */
extern unsigned int uroce_generation;

/* Returns true if an object of that generation was created before a fork() or has been stopped. */
static inline bool uroce_is_stale(unsigned int generation)
{
	return __builtin_expect(generation != uroce_generation, 0);
}

/*
 * Returns 0 if the fork handlers are installed, else ENOMEM.  Called before the first object is
 * created.
 */
int uroce_fork_init(void);

#endif
