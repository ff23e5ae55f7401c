/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Reads a pcapng file and fails the test if the file is malformed.  Written from the specification
 * of the format; it shares no code with the writer of the files.
 */
#ifndef UROCE_TESTS_PCAPNG_READER_H
#define UROCE_TESTS_PCAPNG_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PCAPNG_SEEN_MAX 8192

struct pcapng_seen {
	uint64_t time;
	uint32_t captured, original, flags;
	uint8_t bytes[2048]; /* beginning of the packet */
	char comment[256];
};

struct pcapng_file {
	uint8_t *bytes;
	size_t length;
	unsigned int packets, statistics, fillers;
	uint32_t snaplen;
	uint64_t received, dropped; /* from the last statistics block */
	char filter[256];
	struct pcapng_seen packet[PCAPNG_SEEN_MAX];
};

/*
 * Returns true if each block has the same length at its start and at its end, and the file ends
 * with the last block.
 */
bool pcapng_is_whole(const char *name);

/* Reads the file; also fails the test if timestamps decrease. */
const struct pcapng_file *pcapng_read(const char *name);

#endif
