/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#ifndef UROCE_UTIL_CONTAINER_OF_H
#define UROCE_UTIL_CONTAINER_OF_H

#include <stddef.h>

/* Returns the structure of this type that has the object at pointer, not NULL, as its member. */
#define container_of(pointer, type, member) \
	((type *)(void *)((char *)(pointer)-offsetof(type, member)))

#endif
