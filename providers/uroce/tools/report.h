/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Output of uroce-stat: a table, or JSON. */
#ifndef UROCE_TOOLS_REPORT_H
#define UROCE_TOOLS_REPORT_H

#include <stdio.h>

#include "snapshot.h"

/* all: include counters that are zero */
void report_table(FILE *out, const struct snapshot *snapshot, bool all);
/* One JSON object, without a trailing newline. */
void report_json(FILE *out, const struct snapshot *snapshot);

#endif
