/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Reads a capture file, pcap or pcapng, frame by frame with libpcap. */
#ifndef UROCE_TRACE_INPUT_CAPTURE_FILE_H
#define UROCE_TRACE_INPUT_CAPTURE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "trace/packet.h"

/*
 * Metadata of packets in a pcapng file that libpcap does not return: the direction, and whether the
 * packet was dropped by the capturing process, which uroce reports in a comment.  The file is read
 * a second time, packet by packet in step with libpcap.
 */
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

struct capture_frame {
	uint64_t time_ns;
	uint32_t number; /* frame number in the file, from 1 */
	int link_type;	 /* libpcap's DLT_* */
	const uint8_t *bytes;
	size_t captured, length;
	struct pkt_meta meta;
};

/*
 * Calls each() for every frame; path "-" is standard input.  Returns 0, or -1 with one line without
 * a newline in error if the file cannot be read completely; each() has been called for the frames
 * before the error.
 */
int capture_read(const char *path, void (*each)(void *context, const struct capture_frame *frame),
		 void *context, char *error, size_t error_size);

#endif
