/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What belongs to a context.  Programs close a context and leave objects behind, as with a kernel
 * that ends them when the descriptor is closed; and some destroy them afterwards, in any order.
 * libibverbs finds its functions by way of an object's context, so the memory of a context stays
 * until the last object that points to it has been destroyed: a shell that is of no other use.
 *
 * Objects that do something by themselves are ended when their context is closed.  They are then
 * like those that a forked child inherits (forked.h): they can be destroyed, and all else fails.
 * Imports of a context share its file, and so objects; they are ended when the last context of the
 * file is closed.
 */
#ifndef UROCE_VERBS_BELONGINGS_H
#define UROCE_VERBS_BELONGINGS_H

#include <stdbool.h>

struct ibv_context;
struct uroce_context;

/* In the order in which they are ended: first what uses others. */
enum belonging_kind {
	BELONGING_QP,
	BELONGING_XRC_OPENING,
	BELONGING_AH,
	BELONGING_SRQ,
	BELONGING_CQ,
	BELONGING_KINDS,
};

/* Part of each such object. */
struct uroce_belonging {
	struct uroce_belonging *next, **link; /* link is NULL outside of lists */
	struct uroce_context *context;
	/* Control call, without locks; sets the object's generation to UROCE_ENDED. */
	void (*end)(struct uroce_belonging *belonging);
};

/* The generation of an object that has been ended: of no process. */
#define UROCE_ENDED 0

/* An object points to context (which may be NULL); and no more, now that it has been freed. */
void uroce_context_hold(struct ibv_context *context);
void uroce_context_release(struct ibv_context *context);

/* To be ended with context; and not to be, since it is about to be destroyed. */
void uroce_belongings_enter(struct uroce_belonging *belonging, enum belonging_kind kind,
			    struct uroce_context *context,
			    void (*end)(struct uroce_belonging *belonging));
void uroce_belongings_leave(struct uroce_belonging *belonging);

/* End all objects of the contexts of context's file.  Control call, for device/closing.c. */
void uroce_belongings_end(struct uroce_context *context);

/* For forked.c. */
void uroce_belongings_fork_prepare(void);
void uroce_belongings_fork_parent(void);
void uroce_belongings_fork_child(void);

#endif
