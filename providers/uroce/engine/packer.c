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

/*
 * The ICRC of the packet under way.  One call over many bytes costs less than several over few, so
 * staged bytes are left until something else follows them, or the packet ends.
 */
struct checksum {
	uint32_t state;
	bool begun;
	uint32_t staged; /* staged bytes up to here are in it */
};

static void sum_staged(struct checksum *sum, const struct eng_run *run, uint32_t packet_bytes)
{
	const uint8_t *from = run->staging + sum->staged;
	uint32_t length = run->staged - sum->staged;

	if (sum->begun)
		sum->state = wire_icrc_continue(sum->state, from, length);
	else
		sum->state = wire_icrc_begin(&run->path->wire,
					     (uint16_t)(run->identification + run->packets),
					     packet_bytes, from, length);
	sum->begun = true;
	sum->staged = run->staged;
}

/* One stretch of payload: copied, or referred to when it is long and nobody changes it. */
static enum pack add_stretch(struct eng_run *run, const uint8_t *bytes, uint32_t length,
			     bool stable, uint32_t packet_bytes, struct checksum *sum)
{
	if (!stable || length < run->gather_from)
		return stage(run, bytes, length) ? PACK_DONE : PACK_NO_ROOM;
	if (!add_piece(run, bytes, length))
		return PACK_NO_ROOM;
	sum_staged(sum, run, packet_bytes);
	sum->state = wire_icrc_continue(sum->state, bytes, length);
	return PACK_DONE;
}

static enum pack add_payload(struct eng_qp *qp, struct eng_run *run, const struct payload *payload,
			     uint32_t length, uint32_t packet_bytes, struct checksum *sum)
{
	uint32_t done = 0;

	if (payload->kind == PAYLOAD_BYTES)
		return add_stretch(run, payload->bytes, length, payload->stable, packet_bytes, sum);
	while (done < length) {
		uint32_t piece;
		enum pack result;
		const uint8_t *bytes = sge_piece(qp, payload->list, payload->count,
						 payload->offset + done, length - done, &piece);

		if (!bytes)
			return PACK_FAULT;
		result = add_stretch(run, bytes, piece, payload->stable, packet_bytes, sum);
		if (result != PACK_DONE)
			return result;
		done += piece;
	}
	return PACK_DONE;
}

/* Pad and ICRC. */
static bool add_end(struct eng_run *run, uint32_t pad, uint32_t packet_bytes, struct checksum *sum)
{
	static const uint8_t zeros[4 + WIRE_ICRC_BYTES];
	uint32_t start = run->staged;

	if (!stage(run, zeros, pad + (uint32_t)WIRE_ICRC_BYTES))
		return false;
	run->staged = start + pad;
	sum_staged(sum, run, packet_bytes);
	wire_icrc_finish(sum->state, run->staging + run->staged);
	run->staged += WIRE_ICRC_BYTES;
	return true;
}

static enum pack add_packet(struct eng_qp *qp, struct eng_run *run,
			    const struct wire_packet *packet, const struct payload *payload,
			    uint32_t *bytes)
{
	struct checksum sum = { .staged = run->staged };
	uint8_t *header = run->staging + run->staged;
	uint32_t header_bytes;

	if (run->staging_bytes - run->staged < STAGING_SLACK)
		return PACK_NO_ROOM;
	header_bytes = wire_build_headers(packet, header);
	*bytes = header_bytes + packet->payload_length + packet->pad_count + WIRE_ICRC_BYTES;
	if (!pack_fits(run, *bytes))
		return PACK_NO_ROOM;
	run->staged += header_bytes;
	if (!add_piece(run, header, header_bytes))
		return PACK_NO_ROOM;
	if (packet->payload_length > 0) {
		enum pack result =
			add_payload(qp, run, payload, packet->payload_length, *bytes, &sum);

		if (result != PACK_DONE)
			return result;
	}
	return add_end(run, packet->pad_count, *bytes, &sum) ? PACK_DONE : PACK_NO_ROOM;
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
