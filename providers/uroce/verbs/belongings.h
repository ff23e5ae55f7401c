/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Objects owned by a context.  Programs may close a context with objects still open (the kernel
 * would destroy them with the file descriptor), and some destroy the objects afterwards, in any
 * order.  libibverbs finds its functions through the context of an object, so the memory of a
 * context is kept until the last object that points to it has been destroyed.
 *
 * Closing a context stops the objects that work by themselves (QPs, AHs, SRQs, CQs).  As with those
 * that a forked child gets from its parent (forked.h), such an object can only be destroyed;
 * all other calls fail.  Contexts imported from one another share a file, and with it their
 * objects, which are stopped when the last context of the file is closed.
 */
#ifndef UROCE_VERBS_BELONGINGS_H
#define UROCE_VERBS_BELONGINGS_H

#include <stdbool.h>

struct ibv_context;
struct uroce_context;

/* In the order in which they are stopped: users before what they use. */
enum belonging_kind {
	BELONGING_QP,
	BELONGING_XRC_OPENING,
	BELONGING_AH,
	BELONGING_SRQ,
	BELONGING_CQ,
	BELONGING_KINDS,
};

/* Embedded in each object that is stopped with its context. */
struct uroce_belonging {
	struct uroce_belonging *next, **link; /* link is NULL if the object is in no list */
	struct uroce_context *context;
	/*
	 * Stops the object and sets its generation to UROCE_ENDED.  Called without locks, outside
	 * of progress cycles.
	 */
	void (*end)(struct uroce_belonging *belonging);
};

/* Generation of an object that has been stopped; no process has it. */
#define UROCE_ENDED 0

/*
 * Take and drop a reference of an object to context, which may be NULL.  The last release of a
 * closed context frees it.
 */
void uroce_context_hold(struct ibv_context *context);
void uroce_context_release(struct ibv_context *context);

/* Adds an object that end() stops when the last context of the file of context is closed. */
void uroce_belongings_enter(struct uroce_belonging *belonging, enum belonging_kind kind,
			    struct uroce_context *context,
			    void (*end)(struct uroce_belonging *belonging));
/* Removes an object, if it is still in its list, before it is destroyed. */
void uroce_belongings_leave(struct uroce_belonging *belonging);

/*
 * Stops all objects of the contexts that share the file of context.  Takes locks of progress and of
 * objects, so the caller holds none of them.
 */
void uroce_belongings_end(struct uroce_context *context);

/* Fork handlers, called by device/forked.c. */
void uroce_belongings_fork_prepare(void);
void uroce_belongings_fork_parent(void);
void uroce_belongings_fork_child(void);

#endif
