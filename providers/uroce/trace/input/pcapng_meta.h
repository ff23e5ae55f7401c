/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Metadata of packets in a pcapng file that libpcap does not return: the direction, and whether the
 * packet was dropped by the capturing process, which uroce reports in a comment.  The file is read
 * a second time, packet by packet in step with libpcap.
 */
#ifndef UROCE_TRACE_INPUT_PCAPNG_META_H
#define UROCE_TRACE_INPUT_PCAPNG_META_H

#include <stdbool.h>
#include <stdio.h>

#include "trace/packet.h"

struct pcapng_meta {
	FILE *file;   /* NULL: no more metadata */
	bool swapped; /* the section is not in host byte order */
};

struct pkt_meta {
	enum trace_way way;
	bool refused; /* dropped by the receiving process, or not sent */
};

/* Opens a file.  If it is not a regular pcapng file, packets have no metadata. */
void pcapng_meta_open(struct pcapng_meta *reader, const char *path);
/*
 * Returns the metadata of the next packet.  After a malformed block, which libpcap reports, packets
 * have no metadata.
 */
struct pkt_meta pcapng_meta_next(struct pcapng_meta *reader);
void pcapng_meta_close(struct pcapng_meta *reader);

#endif
