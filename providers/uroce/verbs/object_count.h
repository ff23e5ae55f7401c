/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Numbers of objects of a device, which stay within the limits that it reports (rule U1).  Each
 * context counts its own objects as well, because objects that are left when the last context of a
 * file is closed no longer count, as if the kernel had destroyed them.  A forked child starts with
 * the numbers of its parent.
 */
#ifndef UROCE_VERBS_OBJECT_COUNT_H
#define UROCE_VERBS_OBJECT_COUNT_H

struct ibv_context;
struct uroce_context;

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
