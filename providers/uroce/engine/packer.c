/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "packer.h"

#include <string.h>

#include "sge.h"

/* Headers, whose room is not known beforehand, pad and ICRC. */
#define STAGING_SLACK (WIRE_MAX_HEADER_BYTES + 4 + WIRE_ICRC_BYTES)

void pack_begin(struct eng_burst *burst, const struct eng_path *path)
{
	burst->path = path;
	burst->packets = 0;
	burst->segment = 0;
	burst->bytes = 0;
	burst->piece_count = 0;
	burst->staged = 0;
	burst->closed = false;
	burst->ack_rides = false;
}

bool pack_fits(const struct eng_burst *burst, uint32_t packet_bytes)
{
	if (burst->packets == 0)
		return true;
	return !burst->closed && packet_bytes <= burst->segment &&
	       burst->packets < burst->max_packets &&
	       burst->bytes + packet_bytes <= burst->max_bytes;
}

/* Add bytes to the burst's pieces; bytes that follow the last piece in memory lengthen it. */
static inline bool add_piece(struct eng_burst *burst, const uint8_t *bytes, uint32_t length)
{
	struct eng_piece *last = burst->pieces + burst->piece_count - 1;

	if (burst->piece_count > 0 && last->bytes + last->length == bytes) {
		last->length += length;
		return true;
	}
	if (burst->piece_count == burst->max_pieces)
		return false;
	burst->pieces[burst->piece_count++] = (struct eng_piece){ bytes, length };
	return true;
}

/*
 * The packet under way.  Its staged bytes are left until something else follows them, or the packet
 * ends: one piece costs less than several, and so does one ICRC over many bytes.
 */
struct packing {
	uint32_t bytes;	 /* of the whole packet */
	uint32_t staged; /* staged bytes up to here are in the pieces and in the ICRC */
	uint32_t icrc;	 /* its state */
	bool begun;
};

/* What has been staged; end is the room for the ICRC behind it, or 0. */
static inline bool finish_staged(struct eng_burst *burst, struct packing *packing, uint32_t end)
{
	uint8_t *from = burst->staging + packing->staged;
	uint32_t length = burst->staged - packing->staged;

	if (packing->begun)
		packing->icrc = wire_icrc_continue(packing->icrc, from, length);
	else
		packing->icrc = wire_icrc_begin(&burst->path->wire,
						(uint16_t)(burst->identification + burst->packets),
						packing->bytes, from, length);
	packing->begun = true;
	burst->staged += end;
	packing->staged = burst->staged;
	return add_piece(burst, from, length + end);
}

/* One stretch of payload: copied, or referred to when it is long and stable. */
static inline enum pack add_stretch(struct eng_burst *burst, const uint8_t *bytes, uint32_t length,
				    bool stable, struct packing *packing)
{
	if (!stable || length < burst->gather_from) {
		memcpy(burst->staging + burst->staged, bytes, length);
		burst->staged += length;
		return PACK_DONE;
	}
	if (!finish_staged(burst, packing, 0) || !add_piece(burst, bytes, length))
		return PACK_NO_ROOM;
	packing->icrc = wire_icrc_continue(packing->icrc, bytes, length);
	return PACK_DONE;
}

static enum pack add_list(struct eng_qp *qp, struct eng_burst *burst, const struct payload *payload,
			  uint32_t length, struct packing *packing)
{
	uint32_t done = 0;

	while (done < length) {
		uint32_t piece;
		enum pack result;
		const uint8_t *bytes = sge_piece(qp, payload->list, payload->count,
						 payload->offset + done, length - done, &piece);

		if (!bytes)
			return PACK_ERROR;
		result = add_stretch(burst, bytes, piece, payload->stable, packing);
		if (result != PACK_DONE)
			return result;
		done += piece;
	}
	return PACK_DONE;
}

/* Pad and ICRC. */
static enum pack add_end(struct eng_burst *burst, uint32_t pad, struct packing *packing)
{
	static const uint8_t zeros[4];

	memcpy(burst->staging + burst->staged, zeros, sizeof(zeros));
	burst->staged += pad;
	if (!finish_staged(burst, packing, WIRE_ICRC_BYTES))
		return PACK_NO_ROOM;
	wire_icrc_finish(packing->icrc, burst->staging + burst->staged - WIRE_ICRC_BYTES);
	return PACK_DONE;
}

/* A packet that is put together from several stretches of memory, or refers to its payload. */
static __attribute__((noinline)) enum pack add_parts(struct eng_qp *qp, struct eng_burst *burst,
						     uint32_t header_bytes,
						     const struct payload *payload, uint32_t bytes)
{
	struct packing packing = { .bytes = bytes, .staged = burst->staged };
	uint32_t length = payload->length;
	enum pack result;

	burst->staged += header_bytes;
	result = payload->kind == PAYLOAD_BYTES
			 ? add_stretch(burst, payload->bytes, length, payload->stable, &packing)
			 : add_list(qp, burst, payload, length, &packing);
	return result == PACK_DONE ? add_end(burst, message_pad(length), &packing) : result;
}

/* Is the payload one stretch that is copied, if there is any? */
static inline bool is_whole(const struct eng_burst *burst, const struct payload *payload)
{
	return payload->length == 0 || (payload->kind == PAYLOAD_BYTES &&
					(!payload->stable || payload->length < burst->gather_from));
}

/* Then the packet lies in the staging buffer from end to end: most small ones do. */
static inline enum pack add_whole(struct eng_burst *burst, uint32_t header_bytes,
				  const struct payload *payload, uint32_t bytes)
{
	uint8_t *packet = burst->staging + burst->staged, *end = packet + header_bytes;

	if (payload->length > 0)
		memcpy(end, payload->bytes, payload->length);
	/* The pad; what is not pad is overwritten by the ICRC. */
	memset(end + payload->length, 0, WIRE_ICRC_BYTES);
	wire_icrc_put(&burst->path->wire, (uint16_t)(burst->identification + burst->packets),
		      packet, bytes);
	burst->staged += bytes;
	return add_piece(burst, packet, bytes) ? PACK_DONE : PACK_NO_ROOM;
}

/* Back to where the packet began: the pieces of those before it have burst->bytes together. */
static __attribute__((noinline)) void take_back(struct eng_burst *burst, uint32_t staged)
{
	uint32_t left = burst->bytes;

	burst->staged = staged;
	burst->piece_count = 0;
	while (left > 0) {
		struct eng_piece *piece = &burst->pieces[burst->piece_count++];

		if (piece->length > left)
			piece->length = left;
		left -= piece->length;
	}
}

/* The packet that has been added has so many bytes. */
static inline void count_in(struct eng_burst *burst, uint32_t bytes)
{
	if (burst->packets == 0)
		burst->segment = bytes;
	burst->closed = bytes < burst->segment;
	burst->packets++;
	burst->bytes += bytes;
}

/* Room for all of it, as if nothing could be left where it is: what follows need not look. */
uint8_t *pack_place(const struct eng_burst *burst, uint32_t payload_length)
{
	if (burst->staging_bytes - burst->staged < STAGING_SLACK + payload_length)
		return NULL;
	return burst->staging + burst->staged;
}

inline enum pack pack_add(struct eng_qp *qp, struct eng_burst *burst, uint32_t header_bytes,
			  const struct payload *payload)
{
	const uint32_t bytes = pack_bytes(header_bytes, payload->length), staged = burst->staged;
	enum pack result;

	if (!pack_fits(burst, bytes))
		return PACK_NO_ROOM;
	result = is_whole(burst, payload) ? add_whole(burst, header_bytes, payload, bytes)
					  : add_parts(qp, burst, header_bytes, payload, bytes);
	if (result != PACK_DONE) {
		take_back(burst, staged);
		return result;
	}
	count_in(burst, bytes);
	return PACK_DONE;
}

inline enum pack pack_bare(struct eng_burst *burst, uint32_t header_bytes)
{
	const uint32_t bytes = header_bytes + (uint32_t)WIRE_ICRC_BYTES;
	uint8_t *packet = burst->staging + burst->staged;

	if (!pack_fits(burst, bytes) || !add_piece(burst, packet, bytes))
		return PACK_NO_ROOM;
	wire_icrc_put(&burst->path->wire, (uint16_t)(burst->identification + burst->packets),
		      packet, bytes);
	burst->staged += bytes;
	count_in(burst, bytes);
	return PACK_DONE;
}
