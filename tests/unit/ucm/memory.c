/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* The linker option --wrap directs calls of malloc() and calloc() to this file. */
#include "memory.h"

#include <stdbool.h>
#include <stddef.h>

static unsigned int fails_at;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t elements, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t elements, size_t bytes);

void fail_allocation(unsigned int number)
{
	fails_at = number;
}

static bool fails(void)
{
	return fails_at && --fails_at == 0;
}

void *__wrap_malloc(size_t bytes)
{
	return fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t elements, size_t bytes)
{
	return fails() ? NULL : __real_calloc(elements, bytes);
}
