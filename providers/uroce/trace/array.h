/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Arrays that grow by doubling.  A capture decides how much memory is needed; where there is none
 * left, the program ends with one line, as it could not go on in any useful way.
 */
#ifndef UROCE_TRACE_ARRAY_H
#define UROCE_TRACE_ARRAY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline void *array_or_end(void *items)
{
	if (items)
		return items;
	fprintf(stderr, "uroce-trace: out of memory\n");
	exit(1);
}

/* So many zeros; memory is taken for those that are written to. */
static inline void *array_zeroed(size_t count, size_t size)
{
	return array_or_end(calloc(count, size));
}

/* items, which has room for *room elements of size bytes, with room for one more than count. */
static inline void *array_grow(void *items, size_t count, size_t *room, size_t size)
{
	size_t more = *room ? *room * 2 : 16;

	if (count < *room)
		return items;
	*room = more;
	return array_or_end(more <= SIZE_MAX / size ? realloc(items, more * size) : NULL);
}

/* A pointer to a new last element of an array of struct type { T *items; size_t count, room; }. */
#define array_append(array)                                                          \
	((array)->items = array_grow((array)->items, (array)->count, &(array)->room, \
				     sizeof(*(array)->items)),                       \
	 &(array)->items[(array)->count++])

#endif
