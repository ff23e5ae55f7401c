/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A forked child has the objects of its parent but none of its threads: a lock that another thread
 * held at the moment of the fork stays locked for ever, and the sockets belong to the parent.  So
 * every object remembers the process generation that it was made in, and an object of an older
 * generation takes no lock and reaches no socket: it can be destroyed, and everything else fails.
 */
#ifndef UROCE_VERBS_GENERATION_H
#define UROCE_VERBS_GENERATION_H

#include <stdbool.h>

/*
 * Never UROCE_ENDED (belongings.h).  Constant in a process but for the moment after fork(), when
 * one thread exists and forked.c counts on.
 */
extern unsigned int uroce_generation;

/* Was an object of that generation made by an ancestor of this process? */
static inline bool uroce_inherited(unsigned int generation)
{
	return __builtin_expect(generation != uroce_generation, 0);
}

#endif
