/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Number of objects of each kind that a device has: never more than it reports (rule U1).  Each
 * context counts its own objects as well, because an object that is left behind when the last
 * context of its file is closed no longer counts, as if the kernel had destroyed it.  A forked
 * child goes on with the numbers that its parent had.
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
 * Count an object that is about to be made in context, and hold the context
 * (uroce_context_hold()) until uroce_object_remove().  context may be NULL (tests).  0, or ENOMEM
 * if the device has as many as it reports.
 */
int uroce_object_add(struct ibv_context *context, enum uroce_object kind);
/* The object is gone, or could not be made.  context is the one that it was counted in. */
void uroce_object_remove(struct ibv_context *context, enum uroce_object kind);
/* Count an object of one context in another context of the same device from now on. */
void uroce_object_move(struct ibv_context *from, struct ibv_context *to, enum uroce_object kind);
/* The file of context is closed: objects that are left behind no longer count. */
void uroce_objects_forget(struct uroce_context *context);

#endif
