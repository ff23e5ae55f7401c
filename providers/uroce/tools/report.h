/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * How uroce-stat shows snapshots: as a table for people, as JSON for programs.
 */
#ifndef UROCE_TOOLS_REPORT_H
#define UROCE_TOOLS_REPORT_H

#include <stdio.h>

#include "snapshot.h"

/* all: also the counters that are zero. */
void report_table(FILE *out, const struct snapshot *snapshot, bool all);
/* One JSON object, without a line end. */
void report_json(FILE *out, const struct snapshot *snapshot);

#endif
