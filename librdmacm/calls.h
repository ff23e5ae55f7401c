/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Replacements of the C library functions that librdmacm calls. */
#ifndef UROCE_LIBRDMACM_CALLS_H
#define UROCE_LIBRDMACM_CALLS_H

#include <stdint.h>

/* Returns the address of the replacement of the function name, or 0 if there is none. */
uintptr_t calls_replacement(const char *name);

#endif
