/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* The parts of uroce-stat: its output, and captures of running processes. */
#ifndef UROCE_TOOLS_UROCE_STAT_H
#define UROCE_TOOLS_UROCE_STAT_H

#include <stdio.h>

#include "snapshot.h"

/* Prints a table.  all: include counters that are zero. */
void report_table(FILE *out, const struct snapshot *snapshot, bool all);
/* Prints one JSON object, without a trailing newline. */
void report_json(FILE *out, const struct snapshot *snapshot);

/*
 * Starts a capture in process pid, with settings of the form FILE[,OPTION=VALUE...], and waits
 * until it ends or a signal arrives.  Returns the exit code of the program; messages go to stderr.
 */
int capture_control(unsigned long pid, const char *text);

#endif
