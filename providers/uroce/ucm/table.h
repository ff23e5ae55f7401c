/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Table of objects by a small number.  A new object gets the lowest free number, as in the kernel,
 * since librdmacm keeps arrays indexed by these numbers.
 */
#ifndef UROCE_UCM_TABLE_H
#define UROCE_UCM_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/* Maximum size of librdmacm's arrays. */
#define UCM_TABLE_MAX 65536

struct ucm_table {
	void **entries;
	uint32_t capacity;  /* number of entries */
	uint32_t free_from; /* all smaller numbers are in use */
};

/* Returns false if there is no memory or no free number. */
bool ucm_table_add(struct ucm_table *table, void *object, uint32_t *number);
void *ucm_table_find(const struct ucm_table *table, uint32_t number); /* NULL: none */
void ucm_table_remove(struct ucm_table *table, uint32_t number);

#endif
