/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "table.h"

#include <stdlib.h>
#include <string.h>

static bool grow_table(struct ucm_table *table)
{
	uint32_t capacity = table->capacity ? table->capacity * 2 : 16;
	void **entries;

	if (capacity > UCM_TABLE_MAX)
		return false;
	entries = realloc(table->entries, capacity * sizeof(*entries));
	if (!entries)
		return false;
	memset(entries + table->capacity, 0, (capacity - table->capacity) * sizeof(*entries));
	table->entries = entries;
	table->capacity = capacity;
	return true;
}

bool ucm_table_add(struct ucm_table *table, void *object, uint32_t *number)
{
	uint32_t place = table->free_from;

	while (place < table->capacity && table->entries[place])
		place++;
	if (place == table->capacity && !grow_table(table))
		return false;
	table->entries[place] = object;
	table->free_from = place + 1;
	*number = place;
	return true;
}

void *ucm_table_find(const struct ucm_table *table, uint32_t number)
{
	return number < table->capacity ? table->entries[number] : NULL;
}

void ucm_table_remove(struct ucm_table *table, uint32_t number)
{
	table->entries[number] = NULL;
	if (number < table->free_from)
		table->free_from = number;
}
