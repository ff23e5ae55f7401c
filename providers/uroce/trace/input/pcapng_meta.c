/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "capture_file.h"

#include <byteswap.h>
#include <string.h>
#include <sys/stat.h>

#define SECTION 0x0a0d0d0au /* the same in both byte orders */
#define BYTE_ORDER_MAGIC 0x1a2b3c4du
#define PACKET_OLD 2
#define PACKET_SIMPLE 3
#define PACKET 6
#define BLOCK_BYTES 12 /* type, length and repeated length */
#define PACKET_BYTES 20
/* maximum length of a block, as in libpcap */
#define BLOCK_MAX (16u << 20)
#define OPTION_BYTES 4
#define OPTION_COMMENT 1
#define OPTION_FLAGS 2
#define FLAG_DIRECTION_MASK 3
#define FLAG_INBOUND 1
#define FLAG_OUTBOUND 2
#define COMMENT_PREFIX_BYTES 16 /* enough to recognize it */
#define FILE_BUFFER (1 << 18)

static bool read_bytes(struct pcapng_meta *reader, void *to, size_t bytes)
{
	return fread(to, 1, bytes, reader->file) == bytes;
}

static bool skip_bytes(struct pcapng_meta *reader, size_t bytes)
{
	uint8_t scratch[4096];

	while (bytes > 0) {
		size_t chunk = bytes < sizeof(scratch) ? bytes : sizeof(scratch);

		if (!read_bytes(reader, scratch, chunk))
			return false;
		bytes -= chunk;
	}
	return true;
}

static uint32_t host32(const struct pcapng_meta *reader, uint32_t value)
{
	return reader->swapped ? bswap_32(value) : value;
}

static size_t padded_length(size_t bytes)
{
	return (bytes + 3) & ~(size_t)3;
}

void pcapng_meta_open(struct pcapng_meta *reader, const char *path)
{
	struct stat status;
	uint32_t type = 0;

	memset(reader, 0, sizeof(*reader));
	/* A pipe cannot be read twice, so its packets have no metadata. */
	if (stat(path, &status) < 0 || !S_ISREG(status.st_mode))
		return;
	reader->file = fopen(path, "rb");
	if (!reader->file)
		return;
	setvbuf(reader->file, NULL, _IOFBF, FILE_BUFFER);
	if (!read_bytes(reader, &type, sizeof(type)) || type != SECTION) {
		pcapng_meta_close(reader);
		return;
	}
	rewind(reader->file);
}

void pcapng_meta_close(struct pcapng_meta *reader)
{
	if (reader->file)
		fclose(reader->file);
	reader->file = NULL;
}

/*
 * Reads a packet's options, of this number of bytes, into meta; returns false if they are
 * truncated.
 */
static bool read_options(struct pcapng_meta *reader, size_t bytes, struct pkt_meta *meta)
{
	while (bytes >= OPTION_BYTES) {
		char value[COMMENT_PREFIX_BYTES] = "";
		uint16_t head[2];
		size_t length, chunk;
		uint32_t flags;

		if (!read_bytes(reader, head, sizeof(head)))
			return false;
		bytes -= sizeof(head);
		length = padded_length(reader->swapped ? bswap_16(head[1]) : head[1]);
		chunk = length < sizeof(value) ? length : sizeof(value) - 1;
		if (length > bytes || !read_bytes(reader, value, chunk) ||
		    !skip_bytes(reader, length - chunk))
			return false;
		bytes -= length;
		switch (reader->swapped ? bswap_16(head[0]) : head[0]) {
		case 0:
			return skip_bytes(reader, bytes);
		case OPTION_FLAGS:
			memcpy(&flags, value, sizeof(flags));
			flags = host32(reader, flags) & FLAG_DIRECTION_MASK;
			meta->way = flags == FLAG_INBOUND    ? TRACE_WAY_IN
				    : flags == FLAG_OUTBOUND ? TRACE_WAY_OUT
							     : TRACE_WAY_UNKNOWN;
			break;
		case OPTION_COMMENT:
			value[sizeof(value) - 1] = '\0';
			meta->refused |= strncmp(value, "refused", 7) == 0 ||
					 strncmp(value, "not sent", 8) == 0;
			break;
		}
	}
	return skip_bytes(reader, bytes);
}

/* Reads the body of a packet block and its repeated length. */
static bool read_packet(struct pcapng_meta *reader, size_t body, struct pkt_meta *meta)
{
	uint32_t head[PACKET_BYTES / 4];
	size_t captured;

	if (body < PACKET_BYTES || !read_bytes(reader, head, sizeof(head)))
		return false;
	body -= PACKET_BYTES;
	captured = padded_length(host32(reader, head[3]));
	if (captured > body || !skip_bytes(reader, captured))
		return false;
	return read_options(reader, body - captured, meta) && skip_bytes(reader, sizeof(uint32_t));
}

/*
 * Reads a block.  Sets *is_packet if libpcap returns a packet for it.  Returns false at the end of
 * the file, or if the block is malformed.
 */
static bool read_block(struct pcapng_meta *reader, struct pkt_meta *meta, bool *is_packet)
{
	uint32_t head[2], magic;
	size_t length;

	if (!read_bytes(reader, head, sizeof(head)))
		return false;
	*is_packet = false;
	if (head[0] == SECTION) {
		if (!read_bytes(reader, &magic, sizeof(magic)))
			return false;
		reader->swapped = magic != BYTE_ORDER_MAGIC;
		length = host32(reader, head[1]);
		return length >= BLOCK_BYTES + sizeof(magic) && length <= BLOCK_MAX &&
		       skip_bytes(reader, length - sizeof(head) - sizeof(magic));
	}
	length = host32(reader, head[1]);
	if (length < BLOCK_BYTES || length > BLOCK_MAX)
		return false;
	head[0] = host32(reader, head[0]);
	*is_packet = head[0] == PACKET || head[0] == PACKET_SIMPLE || head[0] == PACKET_OLD;
	if (head[0] == PACKET)
		return read_packet(reader, length - BLOCK_BYTES, meta);
	return skip_bytes(reader, length - sizeof(head));
}

struct pkt_meta pcapng_meta_next(struct pcapng_meta *reader)
{
	struct pkt_meta meta = { TRACE_WAY_UNKNOWN, false };
	bool is_packet = false;

	while (reader->file && !is_packet)
		if (!read_block(reader, &meta, &is_packet))
			pcapng_meta_close(reader);
	return meta;
}
