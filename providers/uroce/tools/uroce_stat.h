/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* The parts of uroce-stat: its output, and captures of running processes. */
#ifndef UROCE_TOOLS_UROCE_STAT_H
#define UROCE_TOOLS_UROCE_STAT_H

#include <stdio.h>

#include "snapshot.h"

/*
 * Prints a report on the process.  all: include counters that are zero.  Adds members to snapshot.
 */
void report_text(FILE *out, json_t *snapshot, bool all);
/* Prints one JSON object, without a trailing newline.  Adds members to snapshot. */
void report_json(FILE *out, json_t *snapshot);

/*
 * Starts a capture in process pid, with settings of the form FILE[,OPTION=VALUE...], and waits
 * until it ends or a signal arrives.  Returns the exit code of the program; messages go to stderr.
 */
int capture_control(unsigned long pid, const char *text);

#endif
