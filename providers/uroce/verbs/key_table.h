/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The process's table of L_Keys and R_Keys: key -> memory.  One table for all devices, because one
 * lock has to stand between every copy that is under way and the end of a registration.
 *
 * Readers are the visits to a QP's engine: progress takes the read side around each visit (struct
 * progress_hooks), so whoever holds the write side knows that no packet points into memory of any
 * region.  Read sides must not nest: writers go first, or deregistration would starve.
 *
 * Keys are a keyed permutation of a counter: no key comes again before 2^32 others have, so that a
 * stale key of a peer meets nothing, and the next key cannot be told from the last.
 */
#ifndef UROCE_VERBS_KEY_TABLE_H
#define UROCE_VERBS_KEY_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory that a key names.  The owner has the storage, and keeps it until key_table_remove(). */
struct key_entry {
	uint32_t key;	    /* set by key_table_add() */
	uint32_t access;    /* set of enum eng_access */
	uint64_t start;	    /* the address by which work requests name the first byte */
	uint64_t length;    /* bytes */
	uint8_t *memory;    /* where the first byte is */
	const void *domain; /* protection domain */
};

/* What a QP found last, so that a run of packets costs one lookup.  Zeroed by its owner. */
struct key_cache {
	uint64_t generation;
	uint32_t key;
	const struct key_entry *entry;
};

/* The read side; progress_hooks. */
void key_table_enter(void);
void key_table_leave(void);

/* Give entry a key and let it be found.  0, or ENOMEM. */
int key_table_add(struct key_entry *entry);
/* After return nobody finds entry, and no copy to or from its memory is under way. */
void key_table_remove(struct key_entry *entry);
/* Replace what the key of entry means, all at once, under the conditions of key_table_remove(). */
void key_table_change(struct key_entry *entry, const struct key_entry *meaning);

/*
 * Memory of length bytes at addr of key, or NULL when there is no such key, or it is of another
 * domain, or one of the rights of need is missing, or the bytes are not all inside.  Between
 * key_table_enter() and key_table_leave(); the answer is valid until then.
 */
void *key_table_map(struct key_cache *cache, const void *domain, uint32_t key, uint64_t addr,
		    uint32_t length, uint32_t need);

/* Regions in the table: for tests and for uroce-stat. */
size_t key_table_count(void);

/*
 * Around fork(), by the thread that forks: nobody is changing the table at that moment, so that the
 * child's copy is whole.  Does not keep visitors out.
 */
void key_table_before_fork(void);
void key_table_after_fork(bool in_child);

#endif
