/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The process's table of L_Keys and R_Keys: key -> memory.  There is one table for all devices,
 * because a single lock must order all copies in progress against deregistration.
 *
 * Readers are visits to the engine of a QP: progress takes the read side around each visit (struct
 * progress_hooks), using the number of the QP's worker as the reader number.  So while the write
 * side is held no packet refers to the memory of any region.  Read sides must not nest, because
 * writers have precedence (otherwise deregistration could starve).
 *
 * Keys are a keyed permutation of a counter: a key is not reused before 2^32 others, so a stale key
 * of a peer finds nothing, and keys cannot be predicted from previous ones.
 *
 * Memory windows (mw.c) are entries that refer to part of a region or to nothing.  The consumer
 * chooses the low byte of their keys with each bind, so the other bits must be unique to the
 * window: keys of windows have the top bit set, those of regions do not.  A binding changes during
 * a visit, when the bind request executes in the send queue.  So bindings have a lock of their own,
 * inside the table's: a visit that uses a window holds its read side until the visit ends, so that
 * no copy through a window continues after the window has been unbound.
 */
#ifndef UROCE_VERBS_MKEY_TABLE_H
#define UROCE_VERBS_MKEY_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"

/* An access right in addition to enum eng_access: the key may be used as an L_Key. */
#define MKEY_LOCAL (1u << 31)

enum mkey_type {
	MKEY_PINNED, /* checked at registration: stays mapped until deregistration */
	MKEY_ODP,    /* ODP: may be unmapped at any time, so each use checks */
	MKEY_NULL,   /* null MR: reads return zeros, writes are discarded */
};

/* Memory to which a key refers.  The owner allocates it, and keeps it until mkey_table_remove(). */
struct mkey_entry {
	uint32_t key;	    /* set by mkey_table_add() */
	uint32_t access;    /* set of enum eng_access and MKEY_LOCAL */
	uint64_t start;	    /* address in work requests of the first byte */
	uint64_t length;    /* bytes */
	uint8_t *memory;    /* address of the first byte */
	const void *domain; /* protection domain */
	enum mkey_type kind;
	unsigned int windows; /* number of windows bound to this region; under the windows lock */
	/* For a window, under the windows lock. */
	struct mkey_entry *region; /* region it is bound to, or NULL */
	const void *user;	   /* only user that may use it (struct mkey_cache); NULL: any */
};

/* Last key that a QP found, so that a burst of packets costs one lookup.  Zeroed by its owner. */
struct mkey_cache {
	uint64_t generation;
	uint32_t key;
	struct mkey_entry *entry;
	const void *user; /* the QP; set by the owner, for type 2 windows */
};

/* Maximum number of readers. */
#define MKEY_TABLE_READERS 16

/* Take and release the read side of a reader; called by progress_hooks. */
void mkey_read_lock(unsigned int reader);
void mkey_read_unlock(unsigned int reader);
/* Allows reader to visit.  Reader 0 may do so from the start. */
void mkey_table_admit(unsigned int reader);

/* Allocate a key of a region or of a window and add entry to the table.  Return 0 or ENOMEM. */
int mkey_table_add(struct mkey_entry *entry);
int mkey_table_add_window(struct mkey_entry *entry);
/*
 * Removes entry.  After return no copy to or from its memory is in progress.  Returns 0, or EBUSY
 * if windows are bound to it.
 */
int mkey_table_remove(struct mkey_entry *entry);
/*
 * Replaces the contents of a region's entry atomically; the key stays.  Conditions and result as
 * for mkey_table_remove(), and EINVAL if entry has been removed.
 */
int mkey_table_change(struct mkey_entry *entry, const struct mkey_entry *contents);

/* Size of the memory that mkey_table_map() returns for MKEY_NULL; larger than a packet. */
#define MKEY_NULL_BYTES 65536

/*
 * MR bounds check of an L_Key or R_Key.  Returns the memory of length bytes at addr of key, or NULL
 * if there is no such key, the domain differs, one of needed_rights is missing, or some of the
 * bytes are outside.  Called between mkey_read_lock() and mkey_read_unlock(); the result is valid
 * until then.
 */
void *mkey_table_map(struct mkey_cache *cache, const void *domain, uint32_t key, uint64_t addr,
		     uint32_t length, uint32_t needed_rights);

/*
 * Executes a FLUSH (struct eng_ops).  The end of a visit orders earlier writes, so only persistence
 * costs anything: an msync() of the range, for which the visit waits.
 */
bool mkey_table_flush(struct mkey_cache *cache, const void *domain, const struct eng_flush *flush);

/*
 * Returns the region or window of key (ignoring the low byte of a window's key), or NULL.  Called
 * inside a visit.
 */
struct mkey_entry *mkey_table_find(uint32_t key);
/*
 * Called inside a visit: between the two calls no other visit uses a window, and this one must not
 * use windows that it looked up before.
 */
void mkey_mw_write_lock(void);
void mkey_mw_write_unlock(void);
/* Unbinds window; called between the two calls above. */
void mkey_table_unbind(struct mkey_entry *window);
/* Unbinds the windows that only user may use.  Called outside of visits. */
void mkey_table_unbind_user(const void *user);

static inline bool mkey_is_window(uint32_t key)
{
	return key >> 31;
}

/* Returns the number of regions and windows, for tests. */
size_t mkey_table_count(void);

#endif
