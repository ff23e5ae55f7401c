/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* What the redirected calls of librdmacm do. */
#ifndef UROCE_LIBRDMACM_CALLS_H
#define UROCE_LIBRDMACM_CALLS_H

#include <stdint.h>

/* The address of our function for a call of that name, or 0: it stays as it is. */
uintptr_t calls_replacement(const char *name);

#endif
