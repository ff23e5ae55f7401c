/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <ctype.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "log.h"

extern char **environ;

#define PREFIX "UROCE_"

enum {
	NAME_BYTES = 64, /* longer than any name of a setting */
};

static const char *const settings[] = {
	"UROCE_FAULT", "UROCE_CREDITS", "UROCE_SHM",	  "UROCE_RECEIVE_BUFFER",
	"UROCE_LOG",   "UROCE_CAPTURE", "UROCE_LOOPBACK", "UROCE_TOS",
	"UROCE_OOO",   "UROCE_WORKERS",
};

static uint32_t smallest(uint32_t a, uint32_t b, uint32_t c)
{
	uint32_t least = a < b ? a : b;

	return least < c ? least : c;
}

/* Levenshtein distance: number of characters to insert, remove or replace; ignores case. */
static uint32_t edit_distance(const char *from, size_t from_length, const char *to)
{
	size_t to_length = strlen(to);
	uint32_t row[NAME_BYTES + 1];

	for (size_t j = 0; j <= to_length; j++)
		row[j] = (uint32_t)j;
	for (size_t i = 1; i <= from_length; i++) {
		uint32_t diagonal = row[0];

		row[0] = (uint32_t)i;
		for (size_t j = 1; j <= to_length; j++) {
			uint32_t above = row[j];
			bool differs = toupper((unsigned char)from[i - 1]) != to[j - 1];

			row[j] = smallest(above + 1, row[j - 1] + 1, diagonal + differs);
			diagonal = above;
		}
	}
	return row[to_length];
}

/*
 * Returns true if name begins with the setting or differs from it by at most a quarter of its
 * letters.  More would take in the names that programs give their own directories and files.
 */
static bool is_like(const char *name, size_t length, const char *setting)
{
	size_t setting_length = strlen(setting);
	size_t quarter = (setting_length - strlen(PREFIX)) / 4;

	return !strncasecmp(name, setting, setting_length) ||
	       edit_distance(name, length, setting) <= (quarter ? quarter : 1);
}

/* Returns the setting that name probably means, or NULL if there is none or name is correct. */
static const char *find_meant_setting(const char *name, size_t length)
{
	const char *meant = NULL;

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		if (strlen(settings[i]) == length && !memcmp(settings[i], name, length))
			return NULL;
		if (!meant && is_like(name, length, settings[i]))
			meant = settings[i];
	}
	return meant;
}

/* Other variables with the prefix may belong to the user's scripts and are not reported. */
static void check_environment(void)
{
	for (char **entry = environ; entry && *entry; entry++) {
		size_t length = strcspn(*entry, "=");
		const char *meant;

		if (length > NAME_BYTES || strncasecmp(*entry, PREFIX, strlen(PREFIX)))
			continue;
		meant = find_meant_setting(*entry, length);
		if (meant)
			uroce_err("unknown environment variable %.*s; did you mean %s?",
				  (int)length, *entry, meant);
	}
}

void uroce_env_warn_unknown(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, check_environment);
}
