/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The process's table of L_Keys and R_Keys: key -> memory.  One table for all devices, because one
 * lock has to stand between every copy that is under way and the end of a registration.
 *
 * Readers are the visits to a QP's engine: progress takes the read side around each visit (struct
 * progress_hooks), as the reader that has the number of the QP's worker, so a thread that holds the
 * write side knows that no packet points into memory of any region.  Read sides must not nest:
 * writers go first, or deregistration would starve.
 *
 * Keys are a keyed permutation of a counter: no key comes again before 2^32 others have, so that a
 * stale key of a peer meets nothing, and the next key cannot be told from the last.
 *
 * Memory windows (mw.h) are entries, too, that mean part of a region or nothing.  Their low byte
 * is the consumer's to choose with each bind, so the other bits have to be theirs alone: the keys
 * of windows have the top bit, those of regions do not.  What a window means is changed in the
 * middle of a visit, when its bind's turn in the send queue comes.  So it has a lock of its own,
 * inside the table's: a visit that uses a window keeps the read side until it leaves, so that no
 * copy through a window outlives what the window meant.
 */
#ifndef UROCE_VERBS_KEY_TABLE_H
#define UROCE_VERBS_KEY_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A right beside those of enum eng_access: the key may be used as an L_Key. */
#define KEY_LOCAL (1u << 31)

enum key_memory {
	KEY_PINNED,    /* checked when it was registered: stays mapped until the key is gone */
	KEY_ON_DEMAND, /* may be unmapped at any time, so each use checks */
	KEY_NO_MEMORY, /* reads as zeros, takes and forgets what is written */
};

/* Memory that a key names.  The owner has the storage, and keeps it until key_table_remove(). */
struct key_entry {
	uint32_t key;	    /* set by key_table_add() */
	uint32_t access;    /* set of enum eng_access and KEY_LOCAL */
	uint64_t start;	    /* the address by which work requests name the first byte */
	uint64_t length;    /* bytes */
	uint8_t *memory;    /* where the first byte is */
	const void *domain; /* protection domain */
	enum key_memory kind;
	unsigned int windows; /* that are bound to this region; under the windows' lock */
	/* Of a window, all under the windows' lock. */
	struct key_entry *region; /* what it is bound to; NULL: to nothing */
	const void *user;	  /* the only one that may use it (struct key_cache); NULL: any */
};

/* What a QP found last, so that a burst of packets costs one lookup.  Zeroed by its owner. */
struct key_cache {
	uint64_t generation;
	uint32_t key;
	struct key_entry *entry;
	const void *user; /* the queue pair; set by the owner, for windows of type 2 */
};

/* Number of readers at most. */
#define KEY_TABLE_READERS 16

/* The read side of a reader; progress_hooks. */
void key_table_enter(unsigned int reader);
void key_table_leave(unsigned int reader);
/* Let reader make visits.  Reader 0 may from the start. */
void key_table_admit(unsigned int reader);

/* Give entry a key and let it be found; the other is for windows.  0, or ENOMEM. */
int key_table_add(struct key_entry *entry);
int key_table_add_window(struct key_entry *entry);
/*
 * After return entry is not found, and no copy to or from its memory is under way.  0, or EBUSY
 * when windows are bound to it.
 */
int key_table_remove(struct key_entry *entry);
/*
 * Replace what the key of entry means (not of a window), all at once.  Conditions and result as of
 * key_table_remove().
 */
int key_table_change(struct key_entry *entry, const struct key_entry *meaning);

/* What key_table_map() answers for KEY_NO_MEMORY is good for so many bytes, more than a packet. */
#define KEY_NO_MEMORY_BYTES 65536

/*
 * Memory of length bytes at addr of key, or NULL when there is no such key, or it is of another
 * domain, or one of the rights of need is missing, or the bytes are not all inside.  Between
 * key_table_enter() and key_table_leave(); the answer is valid until then.
 */
void *key_table_map(struct key_cache *cache, const void *domain, uint32_t key, uint64_t addr,
		    uint32_t length, uint32_t need);

/*
 * Inside a visit: the region or window of key; a window's low byte may be any.  NULL when there is
 * none.
 */
struct key_entry *key_table_find(uint32_t key);
/*
 * Inside a visit: no other visit is using any window until the second call, and this one uses none
 * that it has used before.
 */
void key_table_windows_begin(void);
void key_table_windows_end(void);
/* Between these two: window means nothing from now on. */
void key_table_unbind(struct key_entry *window);
/* Outside visits: unbind the windows that only user may use. */
void key_table_unbind_user(const void *user);

static inline bool key_is_of_window(uint32_t key)
{
	return key >> 31;
}

/* Regions and windows in the table: for tests and for uroce-stat. */
size_t key_table_count(void);

/*
 * Around fork(), by the thread that forks: no thread is changing the table at that moment, so that
 * the child's copy is whole.  Does not keep visitors out.
 */
void key_table_fork_prepare(void);
void key_table_fork_parent(void);
void key_table_fork_child(void);

#endif
