/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * QPNs of a worker (slot << LINK_SLOT_SHIFT | index for each of its slots), and lookup of QPs by
 * number.  Numbers are assigned round robin from a random start, so that a packet for a destroyed
 * QP (or one of an earlier process with this slot) finds no QP for a long time.
 *
 * Slots are never removed, and chunks of entries are allocated on first use and freed at the end,
 * so that qpn_table_find() needs no lock.  Changes are made under a lock inside.
 */
#ifndef UROCE_PROGRESS_BASE_QPN_TABLE_H
#define UROCE_PROGRESS_BASE_QPN_TABLE_H

#include <pthread.h>
#include <stdatomic.h>

#include "progress/progress.h"

#define QPN_TABLE_CHUNK_SHIFT 10
#define QPN_TABLE_CHUNK_ENTRIES (1u << QPN_TABLE_CHUNK_SHIFT)
#define QPN_TABLE_CHUNKS ((LINK_INDEX_MASK + 1) >> QPN_TABLE_CHUNK_SHIFT)
/* Lower indexes are special (QPNs 0 and 1 are management QPs) or reserved. */
#define QPN_TABLE_FIRST_INDEX 16

struct qpn_table_chunk {
	_Atomic(struct progress_qp *) entry[QPN_TABLE_CHUNK_ENTRIES];
};

struct qpn_table_part {
	uint32_t slot;
	_Atomic(struct qpn_table_chunk *) chunk[QPN_TABLE_CHUNKS];
};

struct qpn_table {
	pthread_mutex_t lock;
	uint32_t next; /* place to try first: index of the part << LINK_SLOT_SHIFT | index in it */
	atomic_uint parts; /* number of slots */
	struct qpn_table_part part[LINK_SLOTS_MAX];
};

/* start: index at which the search for the first free number begins, any value */
void qpn_table_init(struct qpn_table *table, uint32_t slot, uint32_t start);
void qpn_table_fini(struct qpn_table *table);
/* Adds a slot, whose numbers are assigned from now on too.  At most LINK_SLOTS_MAX in total. */
void qpn_table_add_slot(struct qpn_table *table, uint32_t slot);

/*
 * Assigns a number to qp (qp->qpn) and adds it to the table.  Returns 0, -ENOSPC if all numbers of
 * the slots are in use, or -ENOMEM.
 */
int qpn_table_add(struct qpn_table *table, struct progress_qp *qp);
void qpn_table_remove(struct qpn_table *table, struct progress_qp *qp);

/*
 * Calls visit for each QP, under the QP's lock.  If the lock is taken: waits for it if wait is
 * true, else skips the QP.  Caller holds cycle_lock.
 */
void qpn_table_for_each(struct qpn_table *table, bool wait,
			void (*visit)(struct progress_qp *, void *arg), void *arg);

/* Returns the part of a slot, or NULL if the slot is not in the table. */
static inline struct qpn_table_part *qpn_table_part(struct qpn_table *table, uint32_t slot)
{
	unsigned int parts;

	if (__builtin_expect(table->part[0].slot == slot, 1))
		return &table->part[0];
	parts = atomic_load_explicit(&table->parts, memory_order_acquire);
	for (unsigned int i = 1; i < parts; i++)
		if (table->part[i].slot == slot)
			return &table->part[i];
	return NULL;
}

static inline struct progress_qp *qpn_table_entry(const struct qpn_table_part *part, uint32_t index)
{
	struct qpn_table_chunk *chunk = atomic_load_explicit(
		&part->chunk[index >> QPN_TABLE_CHUNK_SHIFT], memory_order_acquire);

	if (!chunk)
		return NULL;
	return atomic_load_explicit(&chunk->entry[index & (QPN_TABLE_CHUNK_ENTRIES - 1)],
				    memory_order_acquire);
}

/*
 * Returns the QP of a number, or NULL; sets *ours if the number's slot is in the table.  The caller
 * runs a cycle, which prevents the removal of the QP (progress_qp_remove()).
 */
static inline struct progress_qp *qpn_table_find(struct qpn_table *table, uint32_t qpn, bool *ours)
{
	const struct qpn_table_part *part = qpn_table_part(table, qpn >> LINK_SLOT_SHIFT);

	*ours = part != NULL;
	return part ? qpn_table_entry(part, qpn & LINK_INDEX_MASK) : NULL;
}

#endif
