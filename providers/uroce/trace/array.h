/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Arrays that grow by doubling.  If memory is exhausted, the program prints one line and exits with
 * code 1.
 */
#ifndef UROCE_TRACE_ARRAY_H
#define UROCE_TRACE_ARRAY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline void *array_check_memory(void *items)
{
	if (items)
		return items;
	fprintf(stderr, "uroce-trace: out of memory\n");
	exit(1);
}

/* Returns count zeroed elements of size bytes. */
static inline void *array_calloc(size_t count, size_t size)
{
	return array_check_memory(calloc(count, size));
}

/*
 * Returns items, reallocated if needed, with room for more than count elements of size bytes; *room
 * is the number of elements allocated.
 */
static inline void *array_grow(void *items, size_t count, size_t *room, size_t size)
{
	size_t more = *room ? *room * 2 : 16;

	if (count < *room)
		return items;
	*room = more;
	return array_check_memory(more <= SIZE_MAX / size ? realloc(items, more * size) : NULL);
}

/*
 * Appends an element to an array of type struct { T *items; size_t count, room; }; returns a
 * pointer to it.  The element is not initialized.
 */
#define array_append(array)                                                          \
	((array)->items = array_grow((array)->items, (array)->count, &(array)->room, \
				     sizeof(*(array)->items)),                       \
	 &(array)->items[(array)->count++])

#endif
