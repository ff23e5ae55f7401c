/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "packer.h"

#include <string.h>

#include "sge.h"

/* An ICRC at the end of each packet, and headers whose room is not known beforehand. */
#define STAGING_SLACK (WIRE_MAX_HEADER_BYTES + WIRE_ICRC_BYTES + 4)

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

static bool stage(struct eng_run *run, const void *bytes, uint32_t length)
{
	if (length > run->staging_bytes - run->staged)
		return false;
	memcpy(run->staging + run->staged, bytes, length);
	run->staged += length;
	return true;
}

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
static enum pack add_stretch(struct eng_run *run, const uint8_t *bytes, uint32_t length,
			     bool stable, struct packing *packing)
{
	if (!stable || length < run->gather_from)
		return stage(run, bytes, length) ? PACK_DONE : PACK_NO_ROOM;
	if (!finish_staged(run, packing, 0) || !add_piece(run, bytes, length))
		return PACK_NO_ROOM;
	packing->icrc = wire_icrc_continue(packing->icrc, bytes, length);
	return PACK_DONE;
}

static enum pack add_payload(struct eng_qp *qp, struct eng_run *run, const struct payload *payload,
			     uint32_t length, struct packing *packing)
{
	uint32_t done = 0;

	if (payload->kind == PAYLOAD_BYTES)
		return add_stretch(run, payload->bytes, length, payload->stable, packing);
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

	if (run->staging_bytes - run->staged < sizeof(zeros) + WIRE_ICRC_BYTES)
		return PACK_NO_ROOM;
	memcpy(run->staging + run->staged, zeros, sizeof(zeros));
	run->staged += pad;
	if (!finish_staged(run, packing, WIRE_ICRC_BYTES))
		return PACK_NO_ROOM;
	wire_icrc_finish(packing->icrc, run->staging + run->staged - WIRE_ICRC_BYTES);
	return PACK_DONE;
}

static enum pack add_packet(struct eng_qp *qp, struct eng_run *run,
			    const struct wire_packet *packet, const struct payload *payload,
			    struct packing *packing)
{
	uint32_t header_bytes;

	if (run->staging_bytes - run->staged < STAGING_SLACK)
		return PACK_NO_ROOM;
	header_bytes = wire_build_headers(packet, run->staging + run->staged);
	packing->bytes = header_bytes + packet->payload_length + packet->pad_count +
			 (uint32_t)WIRE_ICRC_BYTES;
	if (!pack_fits(run, packing->bytes))
		return PACK_NO_ROOM;
	run->staged += header_bytes;
	if (packet->payload_length > 0) {
		enum pack result = add_payload(qp, run, payload, packet->payload_length, packing);

		if (result != PACK_DONE)
			return result;
	}
	return add_end(run, packet->pad_count, packing);
}

enum pack pack_add(struct eng_qp *qp, struct eng_run *run, const struct wire_packet *packet,
		   const struct payload *payload)
{
	struct packing packing = { .staged = run->staged };
	const uint32_t staged = run->staged, pieces = run->piece_count;
	const uint32_t last_length = pieces > 0 ? run->pieces[pieces - 1].length : 0;
	enum pack result = add_packet(qp, run, packet, payload, &packing);

	if (result != PACK_DONE) {
		run->staged = staged;
		run->piece_count = pieces;
		if (pieces > 0)
			run->pieces[pieces - 1].length = last_length;
		return result;
	}
	if (run->packets == 0)
		run->segment = packing.bytes;
	run->closed = packing.bytes < run->segment;
	run->packets++;
	run->bytes += packing.bytes;
	return PACK_DONE;
}
