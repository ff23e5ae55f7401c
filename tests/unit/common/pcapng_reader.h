/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Reads a pcapng file that should be sound, and fails the test when it is not.  Written from the
 * format's description; it shares nothing with what writes the files.
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
	uint8_t bytes[2048]; /* the beginning */
	char comment[256];
};

struct pcapng_file {
	uint8_t *bytes;
	size_t length;
	unsigned int packets, statistics, fillers;
	uint32_t snaplen;
	uint64_t received, dropped; /* by the last statistics */
	char filter[256];
	struct pcapng_seen packet[PCAPNG_SEEN_MAX];
};

/*
 * Returns true if all blocks have the same length at both ends, and the last byte belongs to the
 * last one.
 */
bool pcapng_is_whole(const char *name);

/* The file of that name; times that go back fail as well. */
const struct pcapng_file *pcapng_read(const char *name);

#endif
