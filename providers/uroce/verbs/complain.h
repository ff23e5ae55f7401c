/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What a user is told on stderr, a line each: "uroce: " what, why, remedy.  Never from the data
 * path.  UROCE_LOG says how much: off, error (the default) or debug.
 */
#ifndef UROCE_VERBS_COMPLAIN_H
#define UROCE_VERBS_COMPLAIN_H

#include <stdbool.h>

enum uroce_log {
	UROCE_LOG_OFF,
	UROCE_LOG_ERROR,
	UROCE_LOG_DEBUG,
};

/* The level of that name; false when there is none. */
bool uroce_log_parse(const char *text, enum uroce_log *level);

/* Something does not work that the user can mend. */
void uroce_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* What explains an answer that the program may have wanted. */
void uroce_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Name the environment variables UROCE_... that have no meaning; once in a process. */
void uroce_environment_check(void);

#endif
