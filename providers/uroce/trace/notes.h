/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What a pcapng file says of a packet beside its bytes, and libpcap does not pass on: which way it
 * went, and whether the process that captured it refused it (uroce's own captures say so in a
 * comment).  The file is read a second time, packet by packet in step with libpcap.
 */
#ifndef UROCE_TRACE_NOTES_H
#define UROCE_TRACE_NOTES_H

#include <stdbool.h>
#include <stdio.h>

#include "packet.h"

struct notes {
	FILE *file;   /* NULL: there is nothing more to be had */
	bool swapped; /* the section has the other byte order */
};

struct note {
	enum trace_way way;
	bool refused; /* its process did not take it, or it never left */
};

/* A file that is no pcapng, or cannot be read twice, has no notes; that is no error. */
void notes_open(struct notes *notes, const char *path);
/* Of the next packet; what is malformed ends the notes, and libpcap will say why. */
struct note notes_next(struct notes *notes);
void notes_close(struct notes *notes);

#endif
