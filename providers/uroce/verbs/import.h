/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Objects that ibv_import_*() can find by number: protection domains, regions, device memory.  What
 * the application holds is the object itself, or an import that stands for it.  Destroying either
 * destroys the object, and all others may then only be unimported: ibv_import_pd(3).  So the
 * storage of an object stays until the last one that holds it lets go.
 *
 * One that has only been unimported is not destroyed.  As with the kernel's it stays as it is, with
 * all that was made in it, and may be imported again by its number.
 */
#ifndef UROCE_VERBS_IMPORT_H
#define UROCE_VERBS_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ibv_context;
struct uroce_context;

enum import_kind {
	IMPORT_PD,
	IMPORT_MR,
	IMPORT_DM,
};

/* Part of each such object, and its own business. */
struct uroce_importable {
	enum import_kind kind;
	uint32_t handle; /* for the application; unique in the process */
	uint64_t file;	 /* of the contexts that may import it */
	unsigned int holders;
	bool destroyed;
	struct uroce_importable *next, **link;
};

/* Make object known, with one holder.  context may be NULL (tests). */
void uroce_import_add(struct uroce_importable *object, enum import_kind kind,
		      const struct uroce_context *context);
/*
 * Zeroed memory of so many bytes for an import into context, which it holds, and the object of that
 * number, which has one more holder.  NULL with errno when there is none, or not for context.
 */
void *uroce_import_make(enum import_kind kind, struct ibv_context *context, uint32_t handle,
			size_t bytes, struct uroce_importable **object);
/* The object is being destroyed: it is not found again. false: it had been destroyed before. */
bool uroce_import_destroy(struct uroce_importable *object);
bool uroce_import_is_destroyed(struct uroce_importable *object);
/* One more holder, by one that there is. */
void uroce_import_hold(struct uroce_importable *object);
/*
 * A holder lets go.  true: it was the last one of an object that has been destroyed, whose storage
 * is the caller's to free.
 */
bool uroce_import_put(struct uroce_importable *object);

/* Around fork(), so that the child's list is whole. */
void uroce_import_fork_prepare(void);
void uroce_import_fork_done(void);

#endif
