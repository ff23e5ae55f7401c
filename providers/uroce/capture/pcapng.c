/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "pcapng.h"

#include <string.h>

enum {
	SECTION_BLOCK = 0x0a0d0d0a,
	INTERFACE_BLOCK = 1,
	STATISTICS_BLOCK = 5,
	PACKET_BLOCK = 6,
	BYTE_ORDER_MAGIC = 0x1a2b3c4d,
	LINKTYPE_ETHERNET = 1,

	OPTION_END = 0,
	OPTION_COMMENT = 1,
	OPTION_SECTION_APPLICATION = 4,
	OPTION_INTERFACE_NAME = 2,
	OPTION_INTERFACE_DESCRIPTION = 3,
	OPTION_INTERFACE_TIME_UNIT = 9,
	OPTION_INTERFACE_FILTER = 11,
	OPTION_PACKET_FLAGS = 2,
	OPTION_STATISTICS_RECEIVED = 4,
	OPTION_STATISTICS_DROPPED = 5,

	FLAG_INBOUND = 1,
	FLAG_OUTBOUND = 2,
	UNIT_NANOSECONDS = 9, /* timestamp unit: 10^-9 s */

	OPTION_HEAD = 4,
	TEXT_MAX = 200,
};

/* A block type for local use: the highest bit is set. */
#define FILLER_BLOCK 0xa5a5a5a5u

static uint32_t padded_length(uint32_t length)
{
	return (length + 3) & ~UINT32_C(3);
}

static uint8_t *put16(uint8_t *at, uint16_t value)
{
	memcpy(at, &value, sizeof(value));
	return at + sizeof(value);
}

static uint8_t *put32(uint8_t *at, uint32_t value)
{
	memcpy(at, &value, sizeof(value));
	return at + sizeof(value);
}

static uint8_t *put64(uint8_t *at, uint64_t value)
{
	memcpy(at, &value, sizeof(value));
	return at + sizeof(value);
}

/* Writes a timestamp: the high half first, in any byte order. */
static uint8_t *put_time(uint8_t *at, uint64_t time)
{
	return put32(put32(at, (uint32_t)(time >> 32)), (uint32_t)time);
}

static uint8_t *put_option(uint8_t *at, uint16_t code, const void *value, uint16_t length)
{
	at = put16(put16(at, code), length);
	memcpy(at, value, length);
	memset(at + length, 0, padded_length(length) - length);
	return at + padded_length(length);
}

/* Returns the length of text, truncated to most. */
static uint16_t text_length(const char *text, size_t most)
{
	size_t length = strlen(text);

	return (uint16_t)(length < most ? length : most);
}

static uint8_t *put_text(uint8_t *at, uint16_t code, const char *text)
{
	return put_option(at, code, text, text_length(text, TEXT_MAX));
}

/* Ends the options and the block that begins at start; returns its size. */
static size_t end_block(uint8_t *start, uint8_t *at)
{
	uint32_t length;

	at = put16(put16(at, OPTION_END), 0);
	length = (uint32_t)(at - start) + 4;
	put32(at, length);
	put32(start + 4, length);
	return length;
}

static size_t put_section(uint8_t *to)
{
	uint8_t *at = put32(to, SECTION_BLOCK) + 4;

	at = put16(put16(put32(at, BYTE_ORDER_MAGIC), 1), 0);
	at = put64(at, UINT64_MAX); /* section length: unknown */
	at = put_text(at, OPTION_SECTION_APPLICATION, "uroce");
	return end_block(to, at);
}

size_t pcapng_put_head(uint8_t *to, uint32_t snaplen, const char *description, const char *filter)
{
	const uint8_t unit = UNIT_NANOSECONDS;
	size_t section = put_section(to);
	uint8_t *start = to + section, *at = put32(start, INTERFACE_BLOCK) + 4;

	at = put32(put16(put16(at, LINKTYPE_ETHERNET), 0), snaplen);
	at = put_text(at, OPTION_INTERFACE_NAME, "uroce");
	at = put_text(at, OPTION_INTERFACE_DESCRIPTION, description);
	at = put_option(at, OPTION_INTERFACE_TIME_UNIT, &unit, sizeof(unit));
	if (filter && *filter) {
		/* The first byte is the filter's language; 0: text. */
		char text[TEXT_MAX + 1] = { 0 };
		size_t length = text_length(filter, TEXT_MAX);

		memcpy(text + 1, filter, length);
		at = put_option(at, OPTION_INTERFACE_FILTER, text, (uint16_t)(length + 1));
	}
	return section + end_block(start, at);
}

static uint32_t comment_bytes(const struct pcapng_packet *packet)
{
	return packet->comment ? text_length(packet->comment, PCAPNG_COMMENT_MAX) : 0;
}

size_t pcapng_packet_bytes(const struct pcapng_packet *packet)
{
	uint32_t bytes = PCAPNG_PACKET_HEADER + padded_length(packet->captured) + OPTION_HEAD + 4;

	if (packet->comment)
		bytes += OPTION_HEAD + padded_length(comment_bytes(packet));
	return bytes + OPTION_HEAD + 4;
}

void pcapng_put_packet(uint8_t *to, const struct pcapng_packet *packet)
{
	const uint32_t flags = packet->outbound ? FLAG_OUTBOUND : FLAG_INBOUND;
	uint32_t bytes = padded_length(packet->captured);
	uint8_t *at = put32(to, PACKET_BLOCK) + 4;

	at = put_time(put32(at, 0), packet->time);
	at = put32(put32(at, packet->captured), packet->original);
	for (uint32_t i = packet->captured; i < bytes; i++)
		at[i] = 0;
	at = put_option(at + bytes, OPTION_PACKET_FLAGS, &flags, sizeof(flags));
	if (packet->comment)
		at = put_option(at, OPTION_COMMENT, packet->comment,
				(uint16_t)comment_bytes(packet));
	end_block(to, at);
}

uint32_t pcapng_block_bytes(const uint8_t *block)
{
	uint32_t length;

	memcpy(&length, block + 4, sizeof(length));
	return length;
}

size_t pcapng_put_statistics(uint8_t *to, uint64_t time, uint64_t packets, uint64_t lost)
{
	uint8_t *at = put32(to, STATISTICS_BLOCK) + 4;

	at = put_time(put32(at, 0), time);
	at = put_option(at, OPTION_STATISTICS_RECEIVED, &packets, sizeof(packets));
	at = put_option(at, OPTION_STATISTICS_DROPPED, &lost, sizeof(lost));
	return end_block(to, at);
}

void pcapng_put_filler_start(uint8_t to[8], uint32_t length)
{
	put32(put32(to, FILLER_BLOCK), length);
}

void pcapng_put_filler_end(uint8_t to[4], uint32_t length)
{
	put32(to, length);
}
