/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Output of the analysis as text, JSON, CSV and plot. */
#ifndef UROCE_TRACE_REPORT_REPORT_H
#define UROCE_TRACE_REPORT_REPORT_H

#include <stdio.h>

#include "trace/trace.h"

#define TRACE_ADDRESS_BYTES 46

/* Formats an address, as "10.0.0.1" or "fd00::1"; returns text. */
const char *report_address(const uint8_t address[16], char text[TRACE_ADDRESS_BYTES]);

/* Returns the name of a service of enum wire_opcode, as "RC". */
const char *report_service(uint8_t service);

/* Prints the totals of the file, then both directions and violated rules of each connection. */
void report_summary(FILE *out, const char *path, struct trace *trace);
/* Prints the same as one JSON object.  Returns 0, or -1 if writing fails. */
int report_json(FILE *out, const char *path, struct trace *trace);
/* Prints all events as comma-separated values, one a line, after a line of column names. */
void report_timeline(FILE *out, const struct trace *trace);

struct plot_range {
	double from, to; /* seconds since the start of the capture; to < 0: no limit */
};

/* Returns true if the suffix of the name is a supported format: .png, .svg, .pdf or .gp. */
int plot_name_known(const char *name);

/*
 * Draws the direction that has the most request packets to a file; .gp: writes gnuplot's commands.
 * The streams must have events.  Returns 0, or -1 after printing an error.
 */
int plot_draw(const char *name, const struct trace *trace, const struct plot_range *range);

#endif
