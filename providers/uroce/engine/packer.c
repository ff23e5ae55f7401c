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
}

bool pack_fits(const struct eng_run *run, uint32_t packet_bytes)
{
	if (run->packets == 0)
		return true;
	return !run->closed && packet_bytes <= run->segment && run->packets < run->max_packets &&
	       run->bytes + packet_bytes <= run->max_bytes;
}

/* Add bytes to the run's pieces; bytes that follow the last piece in memory lengthen it. */
static bool add_piece(struct eng_run *run, const uint8_t *bytes, uint32_t length)
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

static bool stage(struct eng_run *run, const void *bytes, uint32_t length)
{
	uint8_t *to = run->staging + run->staged;

	if (length > run->staging_bytes - run->staged)
		return false;
	memcpy(to, bytes, length);
	run->staged += length;
	return add_piece(run, to, length);
}

/* One stretch of payload: copied, or referred to when it is long and nobody changes it. */
static enum pack add_stretch(struct eng_run *run, const uint8_t *bytes, uint32_t length,
			     bool stable, uint32_t *icrc)
{
	bool done;

	if (stable && length >= run->gather_from) {
		done = add_piece(run, bytes, length);
	} else {
		done = stage(run, bytes, length);
		/* The copy is what is sent, so the ICRC is of the copy. */
		bytes = run->staging + run->staged - length;
	}
	if (!done)
		return PACK_NO_ROOM;
	*icrc = wire_icrc_continue(*icrc, bytes, length);
	return PACK_DONE;
}

static enum pack add_payload(struct eng_qp *qp, struct eng_run *run, const struct payload *payload,
			     uint32_t length, uint32_t *icrc)
{
	uint32_t done = 0;

	if (payload->kind == PAYLOAD_BYTES)
		return add_stretch(run, payload->bytes, length, payload->stable, icrc);
	while (done < length) {
		uint32_t piece;
		enum pack result;
		const uint8_t *bytes = sge_piece(qp, payload->list, payload->count,
						 payload->offset + done, length - done, &piece);

		if (!bytes)
			return PACK_FAULT;
		result = add_stretch(run, bytes, piece, payload->stable, icrc);
		if (result != PACK_DONE)
			return result;
		done += piece;
	}
	return PACK_DONE;
}

static enum pack add_packet(struct eng_qp *qp, struct eng_run *run,
			    const struct wire_packet *packet, const struct payload *payload,
			    uint32_t *bytes)
{
	uint8_t tail[4 + WIRE_ICRC_BYTES] = { 0 };
	uint8_t *header = run->staging + run->staged;
	uint32_t header_bytes, icrc;

	if (run->staging_bytes - run->staged < STAGING_SLACK)
		return PACK_NO_ROOM;
	header_bytes = wire_build_headers(packet, header);
	*bytes = header_bytes + packet->payload_length + packet->pad_count + WIRE_ICRC_BYTES;
	if (!pack_fits(run, *bytes))
		return PACK_NO_ROOM;
	run->staged += header_bytes;
	if (!add_piece(run, header, header_bytes))
		return PACK_NO_ROOM;
	/* Segments of one call have the identifications 0, 1, 2 ... (rule S14, icrc.h). */
	icrc = wire_icrc_begin(&run->path->wire, (uint16_t)run->packets, *bytes, header,
			       header_bytes);
	if (packet->payload_length > 0) {
		enum pack result = add_payload(qp, run, payload, packet->payload_length, &icrc);

		if (result != PACK_DONE)
			return result;
	}
	icrc = wire_icrc_continue(icrc, tail, packet->pad_count);
	wire_icrc_finish(icrc, tail + packet->pad_count);
	return stage(run, tail, packet->pad_count + (uint32_t)WIRE_ICRC_BYTES) ? PACK_DONE
									       : PACK_NO_ROOM;
}

enum pack pack_add(struct eng_qp *qp, struct eng_run *run, const struct wire_packet *packet,
		   const struct payload *payload)
{
	uint32_t staged = run->staged, pieces = run->piece_count, bytes;
	uint32_t last_length = pieces > 0 ? run->pieces[pieces - 1].length : 0;
	enum pack result = add_packet(qp, run, packet, payload, &bytes);

	if (result != PACK_DONE) {
		run->staged = staged;
		run->piece_count = pieces;
		if (pieces > 0)
			run->pieces[pieces - 1].length = last_length;
		return result;
	}
	if (run->packets == 0)
		run->segment = bytes;
	run->closed = bytes < run->segment;
	run->packets++;
	run->bytes += bytes;
	return PACK_DONE;
}
