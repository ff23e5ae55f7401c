/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The blocks of a pcapng file (draft-ietf-opsawg-pcapng), in the byte order of this machine, as
 * the format has it.  libpcap writes no pcapng, so these few are built here.
 */
#ifndef UROCE_CAPTURE_PCAPNG_H
#define UROCE_CAPTURE_PCAPNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PCAPNG_HEAD_MAX = 1024, /* what pcapng_put_head() needs */
	PCAPNG_STATISTICS_MAX = 64,
	PCAPNG_COMMENT_MAX = 160, /* longer ones are cut */
	PCAPNG_PACKET_HEAD = 28,  /* in front of a packet's bytes */
	PCAPNG_FILLER_MIN = 16,
};

struct pcapng_packet {
	uint64_t time; /* nanoseconds since 1970 */
	uint32_t captured, original;
	bool outbound;
	const char *comment; /* or NULL */
};

/* Section header and the one interface; the bytes used.  filter may be NULL. */
size_t pcapng_put_head(uint8_t *to, uint32_t snaplen, const char *description, const char *filter);

/*
 * A packet's block is made around its bytes: those in front, PCAPNG_PACKET_HEAD of them, and those
 * behind, which begin with the padding.  pcapng_packet_bytes() tells what it takes in all.
 */
size_t pcapng_packet_bytes(const struct pcapng_packet *packet);
void pcapng_put_packet(uint8_t *to, const struct pcapng_packet *packet);

/* The whole length of the block that begins here. */
uint32_t pcapng_block_bytes(const uint8_t *block);

/* How many packets were captured and lost until time. */
size_t pcapng_put_statistics(uint8_t *to, uint64_t time, uint64_t packets, uint64_t lost);

/*
 * A block of length bytes that readers pass over: its first eight bytes, and its last four.  The
 * type is one of those that anybody may use.
 */
void pcapng_put_filler_start(uint8_t to[8], uint32_t length);
void pcapng_put_filler_end(uint8_t to[4], uint32_t length);

#endif
