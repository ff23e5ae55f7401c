/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Numbers in settings, also for uroce-check */
#ifndef UROCE_VERBS_SETTINGS_NUMBER_H
#define UROCE_VERBS_SETTINGS_NUMBER_H

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* UROCE_RECEIVE_BUFFER, in bytes */
enum {
	RECEIVE_BUFFER_MIN = 4096,
	RECEIVE_BUFFER_MAX = 256 << 20,
	RECEIVE_BUFFER_DEFAULT = 4 << 20,
};

/* Base 0: 0x is hexadecimal.  Returns false, without changing *number, if the text is invalid. */
static inline bool settings_parse_number(const char *text, int base, uint32_t min, uint32_t max,
					 uint32_t *number)
{
	char *end;
	unsigned long value;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	value = strtoul(text, &end, base);
	if (errno || *end || value < min || value > max)
		return false;
	*number = (uint32_t)value;
	return true;
}

static inline bool settings_parse_receive_buffer(const char *text, uint32_t *bytes)
{
	return settings_parse_number(text, 10, RECEIVE_BUFFER_MIN, RECEIVE_BUFFER_MAX, bytes);
}

#endif
