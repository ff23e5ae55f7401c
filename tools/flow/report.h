/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Results for people (a table), for programs (JSON) and for the eye (gnuplot). */
#ifndef UROCE_FLOW_REPORT_H
#define UROCE_FLOW_REPORT_H

#include <stdio.h>

#include "run.h"

void report_head(FILE *out);
void report_row(FILE *out, const struct run_result *result);
/* What the ends say of a run that did not end well, or not as predicted. */
void report_end(FILE *out, const struct run_result *result);
void report_json(FILE *out, const struct run_result *results, unsigned int count);
/* Of each scheme, the least depth of those run one way that gave 95 % of its best goodput. */
void report_needed(FILE *out, const struct run_result *results, unsigned int count);
void report_schemes(FILE *out);

/*
 * Plots into a folder: goodput and updates over the depth, and bars of each scenario; the data and
 * the script stay there.  -1 with errno if the folder cannot be written, or gnuplot fails.
 */
int plot_all(const char *folder, const struct run_result *results, unsigned int count);

#endif
