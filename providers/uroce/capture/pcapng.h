/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Writes the blocks of a pcapng file (draft-ietf-opsawg-pcapng) in host byte order, which the
 * format allows.  libpcap does not write pcapng.
 */
#ifndef UROCE_CAPTURE_PCAPNG_H
#define UROCE_CAPTURE_PCAPNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PCAPNG_FILE_HEADER_MAX = 1024, /* maximum size of what pcapng_put_head() writes */
	PCAPNG_STATISTICS_MAX = 64,
	PCAPNG_COMMENT_MAX = 160,  /* longer comments are truncated */
	PCAPNG_PACKET_HEADER = 28, /* size of the block's header before the packet data */
	PCAPNG_FILLER_MIN = 16,
};

struct pcapng_packet {
	uint64_t time; /* ns since 1970 */
	uint32_t captured, original;
	bool outbound;
	const char *comment; /* may be NULL */
};

/* Writes a Section Header Block and an Interface Description Block; returns their size. */
size_t pcapng_put_head(uint8_t *to, uint32_t snaplen, const char *description, const char *filter);

/*
 * An Enhanced Packet Block.  pcapng_packet_bytes() returns its size.  pcapng_put_packet() writes it
 * around the packet data, which the caller has put at to + PCAPNG_PACKET_HEADER.
 */
size_t pcapng_packet_bytes(const struct pcapng_packet *packet);
void pcapng_put_packet(uint8_t *to, const struct pcapng_packet *packet);

/* Returns the total length of a block. */
uint32_t pcapng_block_bytes(const uint8_t *block);

/* Writes an Interface Statistics Block: packets captured and lost until time.  Returns its size. */
size_t pcapng_put_statistics(uint8_t *to, uint64_t time, uint64_t packets, uint64_t lost);

/*
 * First eight and last four bytes of a filler block of length bytes, which readers skip.  Its type
 * is from the range for local use.
 */
void pcapng_put_filler_start(uint8_t to[8], uint32_t length);
void pcapng_put_filler_end(uint8_t to[4], uint32_t length);

#endif
