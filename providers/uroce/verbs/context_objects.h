/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Objects owned by a context.  Programs may close a context with objects still open (the kernel
 * would destroy them with the file descriptor), and some destroy the objects afterwards, in any
 * order.  libibverbs finds its functions through the context of an object, so the memory of a
 * context is kept until the last object that points to it has been destroyed.
 *
 * Closing a context stops the objects that work by themselves (QPs, AHs, SRQs, CQs).  As with those
 * that a forked child gets from its parent (fork.h), such an object can only be destroyed;
 * all other calls fail.  Contexts imported from one another share a file, and with it their
 * objects, which are stopped when the last context of the file is closed.
 */
#ifndef UROCE_VERBS_CONTEXT_OBJECTS_H
#define UROCE_VERBS_CONTEXT_OBJECTS_H

#include <stdbool.h>
#include <sys/queue.h>

struct ibv_context;
struct uroce_context;

/* In the order in which they are stopped: users before what they use. */
enum uroce_ctx_obj_kind {
	UROCE_CTX_OBJ_QP,
	UROCE_CTX_OBJ_XRC_HANDLE,
	UROCE_CTX_OBJ_AH,
	UROCE_CTX_OBJ_SRQ,
	UROCE_CTX_OBJ_CQ,
	UROCE_CTX_OBJ_KINDS,
};

/* Embedded in each object that is stopped with its context. */
struct uroce_ctx_obj {
	LIST_ENTRY(uroce_ctx_obj) link;
	bool listed; /* false: in no list */
	struct uroce_context *context;
	/*
	 * Stops the object and sets its generation to UROCE_GEN_STOPPED.  Called without locks,
	 * outside of progress cycles.
	 */
	void (*stop)(struct uroce_ctx_obj *ctx_obj);
};

/* Generation of an object that has been stopped; no process has it. */
#define UROCE_GEN_STOPPED 0

/*
 * Take and drop a reference of an object to context, which may be NULL.  The last release of a
 * closed context frees it.
 */
void uroce_context_hold(struct ibv_context *context);
void uroce_context_release(struct ibv_context *context);

/* Adds an object that stop() stops when the last context of the file of context is closed. */
void uroce_ctx_obj_add(struct uroce_ctx_obj *ctx_obj, enum uroce_ctx_obj_kind kind,
		       struct uroce_context *context, void (*stop)(struct uroce_ctx_obj *ctx_obj));
/* Removes an object, if it is still in its list, before it is destroyed. */
void uroce_ctx_obj_del(struct uroce_ctx_obj *ctx_obj);

/*
 * Stops all objects of the contexts that share the file of context.  Takes locks of progress and of
 * objects, so the caller holds none of them.
 */
void uroce_ctx_objs_stop(struct uroce_context *context);

/*
 * Numbers of objects of a device, which stay within the limits that it reports (rule U1).  Each
 * context counts its own objects as well, because objects that are left when the last context of a
 * file is closed no longer count, as if the kernel had destroyed them.  A forked child starts with
 * the numbers of its parent.
 */
enum uroce_object {
	UROCE_OBJECT_PD,
	UROCE_OBJECT_MR,
	UROCE_OBJECT_MW,
	UROCE_OBJECT_AH,
	UROCE_OBJECT_CQ,
	UROCE_OBJECT_SRQ,
	UROCE_OBJECT_QP,
	UROCE_OBJECTS,
};

/*
 * Counts an object before it is created in context, and takes a reference to context
 * (uroce_context_hold()) until uroce_object_remove().  context may be NULL (tests).  Returns 0, or
 * ENOMEM at the limit.
 */
int uroce_object_add(struct ibv_context *context, enum uroce_object kind);
/* Undoes uroce_object_add() with the same context. */
void uroce_object_remove(struct ibv_context *context, enum uroce_object kind);
/* Moves the count of an object to another context of the same device. */
void uroce_object_move(struct ibv_context *from, struct ibv_context *to, enum uroce_object kind);
/* Called when the file of context is closed: the objects that are left no longer count. */
void uroce_objects_uncount_all(struct uroce_context *context);

#endif
