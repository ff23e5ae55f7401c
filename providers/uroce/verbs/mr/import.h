/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Reference-counted objects that ibv_import_*() finds by handle: protection domains, memory
 * regions, device memory.  The application has the object itself or imports of it.  Destroying any
 * of these destroys the object, and the others can then only be unimported: ibv_import_pd(3).  The
 * storage of an object is kept until the last reference is dropped.
 *
 * As in the kernel, unimporting does not destroy: an object that has only been unimported stays,
 * with everything created in it, and can be imported again.
 */
#ifndef UROCE_VERBS_MR_IMPORT_H
#define UROCE_VERBS_MR_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct ibv_context;
struct uroce_context;

enum import_kind {
	IMPORT_PD,
	IMPORT_MR,
	IMPORT_DM,
};

/* Embedded in each such object; used only by import.c. */
struct uroce_importable {
	enum import_kind kind;
	uint32_t handle; /* for the application; unique in the process */
	uint64_t file;	 /* file of the contexts that may import the object */
	unsigned int refs;
	bool destroyed;
	LIST_ENTRY(uroce_importable) link;
};

/* Makes object importable, with one reference.  context may be NULL (tests). */
void uroce_import_add(struct uroce_importable *object, enum import_kind kind,
		      const struct uroce_context *context);
/*
 * Allocates bytes, zeroed, for an import into context and takes a reference to context and to the
 * object of that handle.  Returns NULL with errno if context may not import such an object.
 */
void *uroce_import_create(enum import_kind kind, struct ibv_context *context, uint32_t handle,
			  size_t bytes, struct uroce_importable **object);
/*
 * Marks object as destroyed, so that it cannot be imported any more; returns false if it was
 * destroyed before.
 */
bool uroce_import_destroy(struct uroce_importable *object);
bool uroce_import_is_destroyed(struct uroce_importable *object);
/* Takes another reference; the caller has one. */
void uroce_import_hold(struct uroce_importable *object);
/*
 * Drops a reference.  Returns true if it was the last one of a destroyed object, whose storage the
 * caller then frees.
 */
bool uroce_import_put(struct uroce_importable *object);

#endif
