/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Output of results as a table, as JSON and as plots (gnuplot). */
#ifndef UROCE_FLOW_REPORT_H
#define UROCE_FLOW_REPORT_H

#include <stdio.h>

#include "run.h"

void report_header(FILE *out);
void report_row(FILE *out, const struct run_result *result);
/* Prints details of a run, unless its verdict is VERDICT_OK and none was predicted. */
void report_details(FILE *out, const struct run_result *result);
void report_json(FILE *out, const struct run_result *results, unsigned int count);
/* Prints for each scheme the smallest one-way depth that reached 95 % of its best goodput. */
void report_smallest_depths(FILE *out, const struct run_result *results, unsigned int count);
void report_schemes(FILE *out);

/*
 * Writes plots to a directory: goodput, latency and updates over the depth, and bars per scenario,
 * with the data and the gnuplot script.  Returns 0, or -1 with errno if the directory cannot be
 * written or gnuplot fails.
 */
int plot_all(const char *folder, const struct run_result *results, unsigned int count);

#endif
