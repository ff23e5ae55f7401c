/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "burst.h"

#include <string.h>

#include "wire/bytes.h"

#define MIN_PACKET_BYTES (WIRE_BTH_BYTES + WIRE_ICRC_BYTES)
#define FNV_OFFSET_BASIS 0xcbf29ce484222325u
#define FNV_PRIME 0x100000001b3u
/*
 * Number of hashed bytes at the start of a packet, which include the headers; the ICRC, also
 * hashed, covers the rest.
 */
#define HASHED_BYTES 48

/* A part of a datagram that may be a packet. */
struct piece {
	const uint8_t *bytes;
	uint32_t captured, length;
	uint16_t ip_id;
};

static struct piece piece_at(const struct frame *frame, uint32_t at, uint32_t size,
			     unsigned int part)
{
	uint32_t captured = frame->captured > at ? frame->captured - at : 0;
	uint32_t length = frame->length - at < size ? frame->length - at : size;

	return (struct piece){
		.bytes = frame->bytes + (frame->captured > at ? at : 0),
		.captured = captured < length ? captured : length,
		.length = length,
		.ip_id = (uint16_t)(frame->path.ipv6 ? 0 : frame->ip_id + part),
	};
}

static bool is_complete(const struct piece *piece)
{
	return piece->captured == piece->length;
}

static bool icrc_is_correct(const struct frame *frame, const struct piece *piece)
{
	uint16_t id = piece->ip_id;

	return wire_icrc_check(&frame->path, &id, piece->bytes, piece->length) == WIRE_ICRC_OK;
}

/* Parses a packet like wire_parse(), but the payload may be truncated by the snap length. */
static enum wire_error parse_piece(const struct piece *piece, struct wire_packet *packet)
{
	unsigned int headers;

	if (piece->captured < WIRE_BTH_BYTES || piece->length < MIN_PACKET_BYTES)
		return WIRE_TOO_SHORT;
	headers = wire_op_header_length(piece->bytes[0]);
	if (headers > piece->captured)
		return WIRE_TOO_SHORT;
	return wire_parse(piece->bytes, piece->length, packet);
}

/*
 * Returns true if a packet to the same QP may begin here: service, P_Key and destination QP match.
 */
static bool may_follow(const uint8_t *first, const uint8_t *here)
{
	return ((first[0] ^ here[0]) & WIRE_SERVICE_MASK) == 0 &&
	       ((first[1] ^ here[1]) & 0x0f) == 0 && memcmp(first + 2, here + 2, 2) == 0 &&
	       memcmp(first + 5, here + 5, 3) == 0;
}

/* Returns true if the first size bytes are a valid packet and another one may follow. */
static bool is_valid_split(const struct frame *frame, uint32_t size)
{
	struct piece first = piece_at(frame, 0, size, 0);
	struct wire_packet packet;

	if (frame->captured < size + WIRE_BTH_BYTES ||
	    !may_follow(frame->bytes, frame->bytes + size))
		return false;
	return parse_piece(&first, &packet) == WIRE_OK && icrc_is_correct(frame, &first);
}

/* Returns the length of a burst's packets, of a single packet's datagram, or 0 if unknown. */
static uint32_t find_packet_length(const struct frame *frame)
{
	struct piece all = piece_at(frame, 0, frame->length, 0);
	uint32_t max = frame->length - MIN_PACKET_BYTES;
	struct wire_packet packet;

	if (frame->length <= WIRE_MAX_PACKET_BYTES && parse_piece(&all, &packet) == WIRE_OK &&
	    (!is_complete(&all) || icrc_is_correct(frame, &all)))
		return frame->length;
	if (max > WIRE_MAX_PACKET_BYTES)
		max = WIRE_MAX_PACKET_BYTES;
	for (uint32_t size = MIN_PACKET_BYTES; size <= max; size += 4)
		if (is_valid_split(frame, size))
			return size;
	/*
	 * No valid split: a single packet with a wrong ICRC, or a burst of unknown packet length.
	 */
	return frame->length <= WIRE_MAX_PACKET_BYTES ? frame->length : 0;
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t length)
{
	const uint8_t *at = bytes;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ at[i]) * FNV_PRIME;
	return hash;
}

static uint64_t hash_piece(const struct frame *frame, const struct piece *piece)
{
	uint32_t head = piece->captured < HASHED_BYTES ? piece->captured : HASHED_BYTES;
	uint64_t hash = hash_bytes(FNV_OFFSET_BASIS, frame->path.src, sizeof(frame->path.src));

	hash = hash_bytes(hash, frame->path.dst, sizeof(frame->path.dst));
	hash = hash_bytes(hash, &frame->path.src_port, sizeof(frame->path.src_port));
	hash = hash_bytes(hash, &piece->ip_id, sizeof(piece->ip_id));
	hash = hash_bytes(hash, piece->bytes, head);
	if (is_complete(piece))
		hash = hash_bytes(hash, piece->bytes + piece->length - WIRE_ICRC_BYTES,
				  WIRE_ICRC_BYTES);
	return hash;
}

static void fill_packet(const struct frame *frame, const struct piece *piece, unsigned int part,
			struct burst_packet *packet)
{
	uint32_t headers = (uint32_t)(packet->wire.payload - piece->bytes);
	uint32_t there = piece->captured > headers ? piece->captured - headers : 0;
	enum wire_icrc_verdict verdict = WIRE_ICRC_OK;
	uint16_t id = piece->ip_id;

	packet->captured =
		there < packet->wire.payload_length ? there : packet->wire.payload_length;
	packet->hash = hash_piece(frame, piece);
	packet->icrc_unchecked = !is_complete(piece);
	if (is_complete(piece))
		verdict = wire_icrc_check(&frame->path, &id, piece->bytes, piece->length);
	/*
	 * GRO does not keep the IPv4 IDs of the packets after the first, so their ICRCs may be
	 * right for any ID.
	 */
	packet->icrc_is_wrong = part == 0 ? verdict != WIRE_ICRC_OK : verdict == WIRE_ICRC_BAD;
}

unsigned int burst_split(const struct frame *frame,
			 void (*each)(void *context, const struct burst_packet *packet,
				      unsigned int part),
			 void *context, enum wire_error *error, bool *lost)
{
	uint32_t size = find_packet_length(frame);
	unsigned int part = 0;

	*lost = false;
	*error = WIRE_TOO_LONG;
	/* A truncated burst: the headers of its first packet are known, its length is not. */
	if (size == 0) {
		*lost = true;
		return 0;
	}
	for (uint32_t at = 0; at < frame->length; at += size, part++) {
		struct piece piece = piece_at(frame, at, size, part);
		struct burst_packet packet;

		*error = parse_piece(&piece, &packet.wire);
		if (*error != WIRE_OK) {
			*lost = part > 0;
			break;
		}
		fill_packet(frame, &piece, part, &packet);
		each(context, &packet, part);
	}
	return part;
}
