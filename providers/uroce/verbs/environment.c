/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "complain.h"

extern char **environ;

#define PREFIX "UROCE_"

enum {
	NAME_BYTES = 64, /* longer names are compared by their beginning */
};

static const char *const settings[] = {
	"UROCE_FAULT",	 "UROCE_CREDITS",  "UROCE_SHM", "UROCE_RECEIVE_BUFFER", "UROCE_LOG",
	"UROCE_CAPTURE", "UROCE_LOOPBACK", "UROCE_TOS", "UROCE_EARLY",
};

/* What begins so belongs to our tests, to the build and to uroce-run. */
static const char *const others[] = {
	"UROCE_TEST_",	      "UROCE_INTEG_",	    "UROCE_INTEROP", "UROCE_BUILD_",
	"UROCE_EVERY_OPCODE", "UROCE_FUZZ_SECONDS", "UROCE_NIGHTLY", "UROCE_VIEW",
	"UROCE_NET",	      "UROCE_CHAOS_SEED",
};

static uint32_t smallest(uint32_t a, uint32_t b, uint32_t c)
{
	uint32_t least = a < b ? a : b;

	return least < c ? least : c;
}

/* How many characters have to be put in, left out or changed (Levenshtein's distance). */
static uint32_t distance(const char *from, size_t from_length, const char *to)
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

			row[j] = smallest(above + 1, row[j - 1] + 1,
					  diagonal + (from[i - 1] != to[j - 1]));
			diagonal = above;
		}
	}
	return row[to_length];
}

static bool is_known(const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		if (strlen(settings[i]) == length && !memcmp(settings[i], name, length))
			return true;
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (!strncmp(others[i], name, strlen(others[i])))
			return true;
	}
	return false;
}

static const char *nearest(const char *name, size_t length)
{
	const char *best = settings[0];
	uint32_t best_distance = UINT32_MAX;

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		uint32_t found = distance(name, length, settings[i]);

		if (found < best_distance) {
			best_distance = found;
			best = settings[i];
		}
	}
	return best;
}

static void check(void)
{
	for (char **entry = environ; entry && *entry; entry++) {
		size_t length = strcspn(*entry, "=");

		if (strncmp(*entry, PREFIX, strlen(PREFIX)) || is_known(*entry, length))
			continue;
		if (length > NAME_BYTES)
			length = NAME_BYTES;
		uroce_complain("the environment variable %.*s means nothing here: is %s meant?",
			       (int)length, *entry, nearest(*entry, length));
	}
}

void uroce_environment_check(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, check);
}
