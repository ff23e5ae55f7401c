/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "packer.h"

#include <string.h>

#include "sge.h"

/* Headers, whose room is not known beforehand, pad and ICRC. */
#define STAGING_SLACK (WIRE_MAX_HEADER_BYTES + 4 + WIRE_ICRC_BYTES)

void pack_begin(struct eng_run *run, const struct eng_path *path)
{
	run->path = path;
	run->packets = 0;
	run->segment = 0;
	run->bytes = 0;
	run->piece_count = 0;
	run->staged = 0;
	run->closed = false;
	run->ack_rides = false;
}

bool pack_fits(const struct eng_run *run, uint32_t packet_bytes)
{
	if (run->packets == 0)
		return true;
	return !run->closed && packet_bytes <= run->segment && run->packets < run->max_packets &&
	       run->bytes + packet_bytes <= run->max_bytes;
}

/* Add bytes to the run's pieces; bytes that follow the last piece in memory lengthen it. */
static inline bool add_piece(struct eng_run *run, const uint8_t *bytes, uint32_t length)
{
	struct eng_piece *last = run->pieces + run->piece_count - 1;

	if (run->piece_count > 0 && last->bytes + last->length == bytes) {
		last->length += length;
		return true;
	}
	if (run->piece_count == run->max_pieces)
		return false;
	run->pieces[run->piece_count++] = (struct eng_piece){ bytes, length };
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
static inline bool finish_staged(struct eng_run *run, struct packing *packing, uint32_t end)
{
	uint8_t *from = run->staging + packing->staged;
	uint32_t length = run->staged - packing->staged;

	if (packing->begun)
		packing->icrc = wire_icrc_continue(packing->icrc, from, length);
	else
		packing->icrc = wire_icrc_begin(&run->path->wire,
						(uint16_t)(run->identification + run->packets),
						packing->bytes, from, length);
	packing->begun = true;
	run->staged += end;
	packing->staged = run->staged;
	return add_piece(run, from, length + end);
}

/* One stretch of payload: copied, or referred to when it is long and stable. */
static inline enum pack add_stretch(struct eng_run *run, const uint8_t *bytes, uint32_t length,
				    bool stable, struct packing *packing)
{
	if (!stable || length < run->gather_from) {
		memcpy(run->staging + run->staged, bytes, length);
		run->staged += length;
		return PACK_DONE;
	}
	if (!finish_staged(run, packing, 0) || !add_piece(run, bytes, length))
		return PACK_NO_ROOM;
	packing->icrc = wire_icrc_continue(packing->icrc, bytes, length);
	return PACK_DONE;
}

static enum pack add_list(struct eng_qp *qp, struct eng_run *run, const struct payload *payload,
			  uint32_t length, struct packing *packing)
{
	uint32_t done = 0;

	while (done < length) {
		uint32_t piece;
		enum pack result;
		const uint8_t *bytes = sge_piece(qp, payload->list, payload->count,
						 payload->offset + done, length - done, &piece);

		if (!bytes)
			return PACK_FAULT;
		result = add_stretch(run, bytes, piece, payload->stable, packing);
		if (result != PACK_DONE)
			return result;
		done += piece;
	}
	return PACK_DONE;
}

/* Pad and ICRC. */
static enum pack add_end(struct eng_run *run, uint32_t pad, struct packing *packing)
{
	static const uint8_t zeros[4];

	memcpy(run->staging + run->staged, zeros, sizeof(zeros));
	run->staged += pad;
	if (!finish_staged(run, packing, WIRE_ICRC_BYTES))
		return PACK_NO_ROOM;
	wire_icrc_finish(packing->icrc, run->staging + run->staged - WIRE_ICRC_BYTES);
	return PACK_DONE;
}

/* A packet that is put together from several stretches of memory, or refers to its payload. */
static __attribute__((noinline)) enum pack add_parts(struct eng_qp *qp, struct eng_run *run,
						     uint32_t header_bytes,
						     const struct payload *payload, uint32_t bytes)
{
	struct packing packing = { .bytes = bytes, .staged = run->staged };
	uint32_t length = payload->length;
	enum pack result;

	run->staged += header_bytes;
	result = payload->kind == PAYLOAD_BYTES
			 ? add_stretch(run, payload->bytes, length, payload->stable, &packing)
			 : add_list(qp, run, payload, length, &packing);
	return result == PACK_DONE ? add_end(run, message_pad(length), &packing) : result;
}

/* Is the payload one stretch that is copied, if there is any? */
static inline bool is_whole(const struct eng_run *run, const struct payload *payload)
{
	return payload->length == 0 || (payload->kind == PAYLOAD_BYTES &&
					(!payload->stable || payload->length < run->gather_from));
}

/* Then the packet lies in the staging buffer from end to end: most small ones do. */
static inline enum pack add_whole(struct eng_run *run, uint32_t header_bytes,
				  const struct payload *payload, uint32_t bytes)
{
	uint8_t *packet = run->staging + run->staged, *end = packet + header_bytes;

	if (payload->length > 0)
		memcpy(end, payload->bytes, payload->length);
	/* The pad; what is not pad is overwritten by the ICRC. */
	memset(end + payload->length, 0, WIRE_ICRC_BYTES);
	wire_icrc_put(&run->path->wire, (uint16_t)(run->identification + run->packets), packet,
		      bytes);
	run->staged += bytes;
	return add_piece(run, packet, bytes) ? PACK_DONE : PACK_NO_ROOM;
}

/* Back to where the packet began: the pieces of those before it have run->bytes together. */
static __attribute__((noinline)) void take_back(struct eng_run *run, uint32_t staged)
{
	uint32_t left = run->bytes;

	run->staged = staged;
	run->piece_count = 0;
	while (left > 0) {
		struct eng_piece *piece = &run->pieces[run->piece_count++];

		if (piece->length > left)
			piece->length = left;
		left -= piece->length;
	}
}

/* Room for all of it, as if nothing could be left where it is: what follows need not look. */
uint8_t *pack_place(const struct eng_run *run, uint32_t payload_length)
{
	if (run->staging_bytes - run->staged < STAGING_SLACK + payload_length)
		return NULL;
	return run->staging + run->staged;
}

enum pack pack_add(struct eng_qp *qp, struct eng_run *run, uint32_t header_bytes,
		   const struct payload *payload)
{
	const uint32_t bytes = pack_bytes(header_bytes, payload->length), staged = run->staged;
	enum pack result;

	if (!pack_fits(run, bytes))
		return PACK_NO_ROOM;
	result = is_whole(run, payload) ? add_whole(run, header_bytes, payload, bytes)
					: add_parts(qp, run, header_bytes, payload, bytes);
	if (result != PACK_DONE) {
		take_back(run, staged);
		return result;
	}
	if (run->packets == 0)
		run->segment = bytes;
	run->closed = bytes < run->segment;
	run->packets++;
	run->bytes += bytes;
	return PACK_DONE;
}
