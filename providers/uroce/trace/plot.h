/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A time-sequence graph of one direction of a connection, as tcptrace draws for TCP: sent and
 * acknowledged messages, and the credit limit.  Drawn by gnuplot.
 */
#ifndef UROCE_TRACE_PLOT_H
#define UROCE_TRACE_PLOT_H

#include "trace.h"

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
