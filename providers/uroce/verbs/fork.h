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
 * child, by the fork handlers (fork.c), while it has one thread.
 */
extern unsigned int uroce_generation;

/* Returns true if an object of that generation was created before a fork() or has been stopped. */
static inline bool uroce_is_stale(unsigned int generation)
{
	return __builtin_expect(generation != uroce_generation, 0);
}

/* Returns 0, or ENOMEM if the fork handlers are missing.  Called before objects are created. */
int uroce_fork_init(void);

/*
 * Parts of the library.  Those whose data a child continues to use, or whose descriptors it must
 * close, are in lock order (Documentation/locks.md), outermost first; parts that a child only
 * resets precede them.  A lock held while waiting for a callback of the progress thread is outer to
 * the locks that the callback takes; so interface notification precedes the devices.
 */
enum uroce_fork_part {
	UROCE_FORK_MCAST,
	UROCE_FORK_UD,
	UROCE_FORK_CHANNELS,
	UROCE_FORK_CONTEXT_CLOSE,
	UROCE_FORK_NETDEV_EVENTS,
	UROCE_FORK_STATS,
	UROCE_FORK_QP_WORK,
	UROCE_FORK_DEVICES,
	UROCE_FORK_XRC,
	UROCE_FORK_IMPORTS,
	UROCE_FORK_CTX_OBJS,
	UROCE_FORK_PROGRESS,
	UROCE_FORK_MKEY_TABLE,
	UROCE_FORK_CAPTURE,
	UROCE_FORK_PARTS,
};

/* prepare() is called in the order of the parts, the others in reverse; any may be NULL. */
struct uroce_fork_ops {
	void (*prepare)(void), (*parent)(void), (*child)(void);
};

void uroce_fork_register(enum uroce_fork_part part, struct uroce_fork_ops ops);

/* Registers the handlers of a part before those of the process are installed. */
#define UROCE_FORK_HANDLERS(part, ...)                                             \
	__attribute__((constructor(101))) static void register_fork_handlers(void) \
	{                                                                          \
		uroce_fork_register(part, (struct uroce_fork_ops){ __VA_ARGS__ }); \
	}

#endif
