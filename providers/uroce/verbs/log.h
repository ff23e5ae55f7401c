/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Messages on stderr, one line each: "uroce: " what, why, remedy.  Not used on the data path.
 * UROCE_LOG is the log level: off, error (the default) or debug.
 */
#ifndef UROCE_VERBS_LOG_H
#define UROCE_VERBS_LOG_H

#include <stdbool.h>

enum uroce_log {
	UROCE_LOG_OFF,
	UROCE_LOG_ERROR,
	UROCE_LOG_DEBUG,
};

/* Returns false if text names no level. */
bool uroce_log_parse(const char *text, enum uroce_log *level);

/* Reports an error that the user can fix. */
void uroce_err(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Explains an error returned to the program, which may be intended. */
void uroce_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Reports misspelt UROCE_... environment variables, once per process. */
void uroce_env_warn_unknown(void);

#endif
