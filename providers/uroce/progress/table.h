/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The queue pair numbers of this process: slot << LINK_SLOT_SHIFT | index, and the path from a
 * number to its QP.  Numbers are given out round robin from a random start, so that a packet for a
 * QP that has gone (or for one of an earlier process in this slot) meets nothing for a long time.
 *
 * The table is an array of chunks that are made when first needed and stay until the end, so that
 * table_find() needs no lock.  Changes are made under a lock inside.
 */
#ifndef UROCE_PROGRESS_TABLE_H
#define UROCE_PROGRESS_TABLE_H

#include <pthread.h>
#include <stdatomic.h>

#include "progress.h"

#define TABLE_CHUNK_SHIFT 10
#define TABLE_CHUNK_ENTRIES (1u << TABLE_CHUNK_SHIFT)
#define TABLE_CHUNKS ((LINK_INDEX_MASK + 1) >> TABLE_CHUNK_SHIFT)
/* Numbers below are special (0 and 1 are the management queue pairs) or kept back. */
#define TABLE_FIRST_INDEX 16

struct table_chunk {
	_Atomic(struct progress_qp *) entry[TABLE_CHUNK_ENTRIES];
};

struct qpn_table {
	pthread_mutex_t lock;
	uint32_t slot;
	uint32_t next; /* the index to try first */
	uint32_t used;
	_Atomic(struct table_chunk *) chunk[TABLE_CHUNKS];
};

/* start: the index to begin with, any number will do. */
void table_init(struct qpn_table *table, uint32_t slot, uint32_t start);
void table_fini(struct qpn_table *table);

/*
 * Give qp a number (qp->qpn) and enter it.  The number of QPs that are in then; -ENOMEM when no
 * number or no memory is left.
 */
int table_add(struct qpn_table *table, struct progress_qp *qp);
void table_remove(struct qpn_table *table, struct progress_qp *qp);

/*
 * Call visit for each QP, under the QP's lock.  Those whose lock is taken are waited for, or passed
 * over.  Caller holds the turn lock.
 */
void table_visit(struct qpn_table *table, bool wait, void (*visit)(struct progress_qp *, void *arg),
		 void *arg);

/*
 * The QP of a number of this slot, or NULL.  The caller is inside a turn, which keeps the QP
 * from going away (progress_qp_remove()).
 */
static inline struct progress_qp *table_find(struct qpn_table *table, uint32_t qpn)
{
	uint32_t index = qpn & LINK_INDEX_MASK;
	struct table_chunk *chunk = atomic_load_explicit(&table->chunk[index >> TABLE_CHUNK_SHIFT],
							 memory_order_acquire);

	if (!chunk)
		return NULL;
	return atomic_load_explicit(&chunk->entry[index & (TABLE_CHUNK_ENTRIES - 1)],
				    memory_order_acquire);
}

#endif
