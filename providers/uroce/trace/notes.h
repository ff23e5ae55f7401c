/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Metadata of packets in a pcapng file that libpcap does not return: the direction, and whether the
 * packet was dropped by the capturing process, which uroce reports in a comment.  The file is read
 * a second time, packet by packet in step with libpcap.
 */
#ifndef UROCE_TRACE_NOTES_H
#define UROCE_TRACE_NOTES_H

#include <stdbool.h>
#include <stdio.h>

#include "packet.h"

struct notes {
	FILE *file;   /* NULL: no more metadata */
	bool swapped; /* the section is not in host byte order */
};

struct note {
	enum trace_way way;
	bool refused; /* dropped by the receiving process, or not sent */
};

/* Opens a file.  If it is not a regular pcapng file, packets have no metadata. */
void notes_open(struct notes *notes, const char *path);
/* Returns the metadata of the next packet.  A malformed block ends them; libpcap reports it. */
struct note notes_next(struct notes *notes);
void notes_close(struct notes *notes);

#endif
