/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Objects by a small number: a new one gets the lowest that is free, as the kernel does it;
 * librdmacm keeps arrays by them.
 */
#ifndef UROCE_UCM_TABLE_H
#define UROCE_UCM_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/* librdmacm has no room for larger ones. */
#define UCM_TABLE_MAX 65536

struct ucm_table {
	void **entries;
	uint32_t places;    /* of entries */
	uint32_t free_from; /* no smaller number is free */
};

/* false: no memory, or no number is left. */
bool ucm_table_add(struct ucm_table *table, void *object, uint32_t *number);
void *ucm_table_find(const struct ucm_table *table, uint32_t number); /* or NULL */
void ucm_table_remove(struct ucm_table *table, uint32_t number);

#endif
