/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "uroce.h"

void uroce_complain(const char *format, ...)
{
	int saved = errno;
	char line[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	/* One call, so that lines of several threads do not mix. */
	fprintf(stderr, "uroce: %s\n", line);
	errno = saved;
}
