/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "table.h"

#include <errno.h>
#include <stdlib.h>

#include "wire/packet.h"

void table_init(struct qpn_table *table, uint32_t slot, uint32_t start)
{
	pthread_mutex_init(&table->lock, NULL);
	table->slot = slot;
	table->next = start & LINK_INDEX_MASK;
	table->used = 0;
	for (uint32_t i = 0; i < TABLE_CHUNKS; i++)
		atomic_init(&table->chunk[i], NULL);
}

void table_fini(struct qpn_table *table)
{
	for (uint32_t i = 0; i < TABLE_CHUNKS; i++)
		free(atomic_load(&table->chunk[i]));
	pthread_mutex_destroy(&table->lock);
}

static bool may_be_given(uint32_t qpn)
{
	return (qpn & LINK_INDEX_MASK) >= TABLE_FIRST_INDEX && qpn != WIRE_MULTICAST_QPN;
}

static struct table_chunk *chunk_of(struct qpn_table *table, uint32_t index)
{
	struct table_chunk *chunk = atomic_load_explicit(&table->chunk[index >> TABLE_CHUNK_SHIFT],
							 memory_order_relaxed);

	if (!chunk) {
		chunk = calloc(1, sizeof(*chunk));
		atomic_store_explicit(&table->chunk[index >> TABLE_CHUNK_SHIFT], chunk,
				      memory_order_release);
	}
	return chunk;
}

/* The free number that is next in turn; caller holds the lock. */
static int find_free(struct qpn_table *table, uint32_t *qpn)
{
	uint32_t tried;

	for (tried = 0; tried <= LINK_INDEX_MASK; tried++) {
		uint32_t index = (table->next + tried) & LINK_INDEX_MASK;
		struct table_chunk *chunk;

		*qpn = table->slot << LINK_SLOT_SHIFT | index;
		if (!may_be_given(*qpn))
			continue;
		chunk = chunk_of(table, index);
		if (!chunk)
			return -ENOMEM;
		if (!atomic_load_explicit(&chunk->entry[index & (TABLE_CHUNK_ENTRIES - 1)],
					  memory_order_relaxed))
			return 0;
	}
	return -ENOMEM;
}

static void enter(struct qpn_table *table, uint32_t qpn, struct progress_qp *qp)
{
	uint32_t index = qpn & LINK_INDEX_MASK;

	atomic_store_explicit(&chunk_of(table, index)->entry[index & (TABLE_CHUNK_ENTRIES - 1)], qp,
			      memory_order_release);
}

int table_add(struct qpn_table *table, struct progress_qp *qp)
{
	uint32_t qpn;
	int result;

	pthread_mutex_lock(&table->lock);
	result = find_free(table, &qpn);
	if (!result) {
		qp->qpn = qpn;
		enter(table, qpn, qp);
		table->next = (qpn + 1) & LINK_INDEX_MASK;
		result = (int)++table->used;
	}
	pthread_mutex_unlock(&table->lock);
	return result;
}

void table_remove(struct qpn_table *table, struct progress_qp *qp)
{
	pthread_mutex_lock(&table->lock);
	enter(table, qp->qpn, NULL);
	table->used--;
	pthread_mutex_unlock(&table->lock);
}

void table_visit(struct qpn_table *table, bool wait, void (*visit)(struct progress_qp *, void *arg),
		 void *arg)
{
	for (uint32_t i = 0; i <= LINK_INDEX_MASK; i++) {
		struct progress_qp *qp = table_find(table, i);

		/* Chunks that were never made are the rule. */
		if (!qp && !atomic_load(&table->chunk[i >> TABLE_CHUNK_SHIFT]))
			i |= TABLE_CHUNK_ENTRIES - 1;
		if (!qp)
			continue;
		if (wait)
			pthread_mutex_lock(&qp->lock);
		else if (pthread_mutex_trylock(&qp->lock))
			continue;
		visit(qp, arg);
		pthread_mutex_unlock(&qp->lock);
	}
}
