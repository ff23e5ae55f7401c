/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "notes.h"

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
/* libpcap's maximum */
#define BLOCK_MAX (16u << 20)
#define OPTION_BYTES 4
#define OPTION_COMMENT 1
#define OPTION_FLAGS 2
#define FLAG_DIRECTION_MASK 3
#define FLAG_INBOUND 1
#define FLAG_OUTBOUND 2
#define COMMENT_PREFIX_BYTES 16 /* enough to recognize it */
#define FILE_BUFFER (1 << 18)

static bool read_bytes(struct notes *notes, void *to, size_t bytes)
{
	return fread(to, 1, bytes, notes->file) == bytes;
}

static bool skip_bytes(struct notes *notes, size_t bytes)
{
	uint8_t scratch[4096];

	while (bytes > 0) {
		size_t chunk = bytes < sizeof(scratch) ? bytes : sizeof(scratch);

		if (!read_bytes(notes, scratch, chunk))
			return false;
		bytes -= chunk;
	}
	return true;
}

static uint32_t host32(const struct notes *notes, uint32_t value)
{
	return notes->swapped ? bswap_32(value) : value;
}

static size_t padded_length(size_t bytes)
{
	return (bytes + 3) & ~(size_t)3;
}

void notes_open(struct notes *notes, const char *path)
{
	struct stat status;
	uint32_t type = 0;

	memset(notes, 0, sizeof(*notes));
	/* A pipe cannot be read twice. */
	if (stat(path, &status) < 0 || !S_ISREG(status.st_mode))
		return;
	notes->file = fopen(path, "rb");
	if (!notes->file)
		return;
	setvbuf(notes->file, NULL, _IOFBF, FILE_BUFFER);
	if (!read_bytes(notes, &type, sizeof(type)) || type != SECTION) {
		notes_close(notes);
		return;
	}
	rewind(notes->file);
}

void notes_close(struct notes *notes)
{
	if (notes->file)
		fclose(notes->file);
	notes->file = NULL;
}

/* Reads the options of a packet, bytes long; returns false if they are truncated. */
static bool read_options(struct notes *notes, size_t bytes, struct note *note)
{
	while (bytes >= OPTION_BYTES) {
		char value[COMMENT_PREFIX_BYTES] = "";
		uint16_t head[2];
		size_t length, chunk;
		uint32_t flags;

		if (!read_bytes(notes, head, sizeof(head)))
			return false;
		bytes -= sizeof(head);
		length = padded_length(notes->swapped ? bswap_16(head[1]) : head[1]);
		chunk = length < sizeof(value) ? length : sizeof(value) - 1;
		if (length > bytes || !read_bytes(notes, value, chunk) ||
		    !skip_bytes(notes, length - chunk))
			return false;
		bytes -= length;
		switch (notes->swapped ? bswap_16(head[0]) : head[0]) {
		case 0:
			return skip_bytes(notes, bytes);
		case OPTION_FLAGS:
			memcpy(&flags, value, sizeof(flags));
			flags = host32(notes, flags) & FLAG_DIRECTION_MASK;
			note->way = flags == FLAG_INBOUND    ? TRACE_WAY_IN
				    : flags == FLAG_OUTBOUND ? TRACE_WAY_OUT
							     : TRACE_WAY_UNKNOWN;
			break;
		case OPTION_COMMENT:
			value[sizeof(value) - 1] = '\0';
			note->refused |= strncmp(value, "refused", 7) == 0 ||
					 strncmp(value, "not sent", 8) == 0;
			break;
		}
	}
	return skip_bytes(notes, bytes);
}

/* Reads the body of a packet block and its repeated length. */
static bool read_packet(struct notes *notes, size_t body, struct note *note)
{
	uint32_t head[PACKET_BYTES / 4];
	size_t captured;

	if (body < PACKET_BYTES || !read_bytes(notes, head, sizeof(head)))
		return false;
	body -= PACKET_BYTES;
	captured = padded_length(host32(notes, head[3]));
	if (captured > body || !skip_bytes(notes, captured))
		return false;
	return read_options(notes, body - captured, note) && skip_bytes(notes, sizeof(uint32_t));
}

/* Reads a block.  Sets *is_packet if libpcap returns a packet for it. */
static bool read_block(struct notes *notes, struct note *note, bool *is_packet)
{
	uint32_t head[2], magic;
	size_t length;

	if (!read_bytes(notes, head, sizeof(head)))
		return false;
	*is_packet = false;
	if (head[0] == SECTION) {
		if (!read_bytes(notes, &magic, sizeof(magic)))
			return false;
		notes->swapped = magic != BYTE_ORDER_MAGIC;
		length = host32(notes, head[1]);
		return length >= BLOCK_BYTES + sizeof(magic) && length <= BLOCK_MAX &&
		       skip_bytes(notes, length - sizeof(head) - sizeof(magic));
	}
	length = host32(notes, head[1]);
	if (length < BLOCK_BYTES || length > BLOCK_MAX)
		return false;
	head[0] = host32(notes, head[0]);
	*is_packet = head[0] == PACKET || head[0] == PACKET_SIMPLE || head[0] == PACKET_OLD;
	if (head[0] == PACKET)
		return read_packet(notes, length - BLOCK_BYTES, note);
	return skip_bytes(notes, length - sizeof(head));
}

struct note notes_next(struct notes *notes)
{
	struct note note = { TRACE_WAY_UNKNOWN, false };
	bool is_packet = false;

	while (notes->file && !is_packet)
		if (!read_block(notes, &note, &is_packet))
			notes_close(notes);
	return note;
}
