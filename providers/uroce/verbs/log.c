/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log_line.h"

static const char *const levels[] = {
	[UROCE_LOG_OFF] = "off",
	[UROCE_LOG_ERROR] = "error",
	[UROCE_LOG_DEBUG] = "debug",
};

bool uroce_log_parse(const char *text, enum uroce_log *level)
{
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		if (strcmp(text, levels[i]) == 0) {
			*level = (enum uroce_log)i;
			return true;
		}
	}
	return false;
}

static enum uroce_log current_level(void)
{
	enum uroce_log level = UROCE_LOG_ERROR;
	const char *text = getenv("UROCE_LOG");

	/* An invalid value is reported when a device is opened. */
	if (text)
		uroce_log_parse(text, &level);
	return level;
}

static void print_message(enum uroce_log level, const char *format, va_list args)
{
	int saved = errno;
	char line[1024];

	if (level > current_level())
		return;
	vsnprintf(line, sizeof(line), format, args);
	errno = saved;
	uroce_stderr_line(line);
}

void uroce_err(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_message(UROCE_LOG_ERROR, format, args);
	va_end(args);
}

void uroce_debug(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_message(UROCE_LOG_DEBUG, format, args);
	va_end(args);
}
