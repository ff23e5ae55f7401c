/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* What is derived, for readers and programs. */
#ifndef UROCE_TRACE_REPORT_H
#define UROCE_TRACE_REPORT_H

#include <stdio.h>

#include "trace.h"

#define TRACE_ADDRESS_BYTES 46

/* "10.0.0.1" or "fd00::1". */
const char *report_address(const uint8_t address[16], char text[TRACE_ADDRESS_BYTES]);

/* "RC", of a service of enum wire_opcode. */
const char *report_service(uint8_t service);

/* The file, then each connection: both directions side by side, and the rules that were broken. */
void report_summary(FILE *out, const char *path, struct trace *trace);
/* The same as one JSON object; 0, or -1 with a full disk. */
int report_json(FILE *out, const char *path, struct trace *trace);
/* All events as comma-separated values, one a line, the first line names them. */
void report_timeline(FILE *out, const struct trace *trace);

#endif
