/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Reads a capture file, pcap or pcapng, frame by frame with libpcap. */
#ifndef UROCE_TRACE_INPUT_CAPTURE_FILE_H
#define UROCE_TRACE_INPUT_CAPTURE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "pcapng_meta.h"

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
