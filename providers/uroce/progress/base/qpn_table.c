/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "qpn_table.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "wire/packet.h"

void qpn_table_init(struct qpn_table *table, uint32_t slot, uint32_t start)
{
	pthread_mutex_init(&table->lock, NULL);
	atomic_init(&table->parts, 0);
	table->next = start & LINK_INDEX_MASK;
	qpn_table_add_slot(table, slot);
}

void qpn_table_fini(struct qpn_table *table)
{
	for (unsigned int i = 0; i < atomic_load(&table->parts); i++)
		for (uint32_t j = 0; j < QPN_TABLE_CHUNKS; j++)
			free(atomic_load(&table->part[i].chunk[j]));
	pthread_mutex_destroy(&table->lock);
}

void qpn_table_add_slot(struct qpn_table *table, uint32_t slot)
{
	unsigned int parts;

	pthread_mutex_lock(&table->lock);
	parts = atomic_load(&table->parts);
	assert(parts < LINK_SLOTS_MAX);
	table->part[parts].slot = slot;
	for (uint32_t i = 0; i < QPN_TABLE_CHUNKS; i++)
		atomic_init(&table->part[parts].chunk[i], NULL);
	atomic_store_explicit(&table->parts, parts + 1, memory_order_release);
	pthread_mutex_unlock(&table->lock);
}

static bool may_be_assigned(uint32_t qpn)
{
	return (qpn & LINK_INDEX_MASK) >= QPN_TABLE_FIRST_INDEX && qpn != WIRE_MULTICAST_QPN;
}

/* Returns the chunk of index, which is allocated if necessary, or NULL if out of memory. */
static struct qpn_table_chunk *chunk_of(struct qpn_table_part *part, uint32_t index)
{
	_Atomic(struct qpn_table_chunk *) *place = &part->chunk[index >> QPN_TABLE_CHUNK_SHIFT];
	struct qpn_table_chunk *chunk = atomic_load_explicit(place, memory_order_relaxed);

	if (!chunk) {
		chunk = calloc(1, sizeof(*chunk));
		atomic_store_explicit(place, chunk, memory_order_release);
	}
	return chunk;
}

/*
 * Stores the next free place (as qpn_table.next) in *place.  Returns 0, -ENOSPC or -ENOMEM.  Caller
 * holds the lock.
 */
static int find_free(struct qpn_table *table, uint32_t *place)
{
	uint32_t places = atomic_load(&table->parts) << LINK_SLOT_SHIFT;

	for (uint32_t tried = 0; tried < places; tried++) {
		struct qpn_table_part *part;
		struct qpn_table_chunk *chunk;

		*place = (table->next + tried) % places;
		part = &table->part[*place >> LINK_SLOT_SHIFT];
		if (!may_be_assigned(part->slot << LINK_SLOT_SHIFT | (*place & LINK_INDEX_MASK)))
			continue;
		chunk = chunk_of(part, *place & LINK_INDEX_MASK);
		if (!chunk)
			return -ENOMEM;
		if (!atomic_load_explicit(&chunk->entry[*place & (QPN_TABLE_CHUNK_ENTRIES - 1)],
					  memory_order_relaxed))
			return 0;
	}
	return -ENOSPC;
}

static void set_entry(struct qpn_table *table, uint32_t qpn, struct progress_qp *qp)
{
	struct qpn_table_part *part = qpn_table_part(table, qpn >> LINK_SLOT_SHIFT);
	uint32_t index = qpn & LINK_INDEX_MASK;

	atomic_store_explicit(&chunk_of(part, index)->entry[index & (QPN_TABLE_CHUNK_ENTRIES - 1)],
			      qp, memory_order_release);
}

int qpn_table_add(struct qpn_table *table, struct progress_qp *qp)
{
	uint32_t place;
	int result;

	pthread_mutex_lock(&table->lock);
	result = find_free(table, &place);
	if (!result) {
		qp->qpn = table->part[place >> LINK_SLOT_SHIFT].slot << LINK_SLOT_SHIFT |
			  (place & LINK_INDEX_MASK);
		set_entry(table, qp->qpn, qp);
		table->next = place + 1;
	}
	pthread_mutex_unlock(&table->lock);
	return result;
}

void qpn_table_remove(struct qpn_table *table, struct progress_qp *qp)
{
	pthread_mutex_lock(&table->lock);
	set_entry(table, qp->qpn, NULL);
	pthread_mutex_unlock(&table->lock);
}

static void visit_part(const struct qpn_table_part *part, bool wait,
		       void (*visit)(struct progress_qp *, void *arg), void *arg)
{
	for (uint32_t i = 0; i <= LINK_INDEX_MASK; i++) {
		struct progress_qp *qp = qpn_table_entry(part, i);

		/* Skip chunks that were never allocated, which is most of them. */
		if (!qp && !atomic_load(&part->chunk[i >> QPN_TABLE_CHUNK_SHIFT]))
			i |= QPN_TABLE_CHUNK_ENTRIES - 1;
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

void qpn_table_for_each(struct qpn_table *table, bool wait,
			void (*visit)(struct progress_qp *, void *arg), void *arg)
{
	for (unsigned int i = 0; i < atomic_load(&table->parts); i++)
		visit_part(&table->part[i], wait, visit, arg);
}
