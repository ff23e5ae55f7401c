/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* A capture file, pcap or pcapng, read frame by frame by libpcap. */
#ifndef UROCE_TRACE_CAPTURE_H
#define UROCE_TRACE_CAPTURE_H

#include <stddef.h>
#include <stdint.h>

#include "notes.h"

struct capture_frame {
	uint64_t time_ns;
	uint32_t number; /* in the file, from 1 */
	int link_type;	 /* DLT_ of libpcap */
	const uint8_t *bytes;
	size_t captured, length;
	struct note note;
};

/*
 * Calls each() for every frame.  Returns 0, or -1 when the file cannot be read or not to its end;
 * why is then one line without a newline in error, and what was read before has been given to
 * each().  path "-" is standard input.
 */
int capture_read(const char *path, void (*each)(void *context, const struct capture_frame *frame),
		 void *context, char *error, size_t error_size);

#endif
