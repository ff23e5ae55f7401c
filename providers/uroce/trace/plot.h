/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A time-sequence graph of one direction of a connection, as tcptrace has it for TCP: what is sent,
 * what is acknowledged, and the line that credits draw.  gnuplot draws it.
 */
#ifndef UROCE_TRACE_PLOT_H
#define UROCE_TRACE_PLOT_H

#include "trace.h"

struct plot_range {
	double from, to; /* seconds since the capture began; to < 0: all */
};

/* Is it the name of a file that can be drawn to?  By its ending: png, svg, pdf, or gp. */
int plot_name_known(const char *name);

/*
 * Draws to the file name: the picture, or gnuplot's commands where it ends in .gp.  Returns 0, or
 * -1 with one line on stderr.  Streams have to have their events; one is chosen that has most
 * packets.
 */
int plot_draw(const char *name, const struct trace *trace, const struct plot_range *range);

#endif
