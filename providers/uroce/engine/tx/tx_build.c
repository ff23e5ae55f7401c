/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "tx_build.h"

#include <string.h>

#include "engine/base/sge.h"

/* Room in the staging buffer for headers (of a length unknown in advance), pad and ICRC. */
#define STAGING_SLACK (WIRE_MAX_HEADER_BYTES + 4 + WIRE_ICRC_BYTES)

void tx_build_begin(struct eng_burst *burst, const struct eng_path *path)
{
	burst->path = path;
	burst->packets = 0;
	burst->segment = 0;
	burst->bytes = 0;
	burst->piece_count = 0;
	burst->staged = 0;
	burst->closed = false;
	burst->has_ack = false;
}

bool tx_build_fits(const struct eng_burst *burst, uint32_t packet_bytes)
{
	if (burst->packets == 0)
		return true;
	return !burst->closed && packet_bytes <= burst->segment &&
	       burst->packets < burst->max_packets &&
	       burst->bytes + packet_bytes <= burst->max_bytes;
}

/* Adds bytes to the pieces of the burst; bytes contiguous with the last piece extend it. */
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
 * Packet under construction.  Its staged bytes become a piece only when other memory follows them
 * or the packet ends: one piece costs less than several, and so does one ICRC over many bytes.
 */
struct packing {
	uint32_t bytes;	 /* number of bytes of the whole packet */
	uint32_t staged; /* end of the staged bytes that are in the pieces and in the ICRC */
	uint32_t icrc;	 /* state of the ICRC computation */
	bool begun;
};

/* Adds the staged bytes to the pieces and the ICRC; end: room for the ICRC after them, or 0. */
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

/* Adds a contiguous range of payload: copied, or by reference if it is long and stable. */
static inline enum tx_build_result add_stretch(struct eng_burst *burst, const uint8_t *bytes,
					       uint32_t length, bool stable,
					       struct packing *packing)
{
	if (!stable || length < burst->gather_from) {
		memcpy(burst->staging + burst->staged, bytes, length);
		burst->staged += length;
		return TX_BUILD_OK;
	}
	if (!finish_staged(burst, packing, 0) || !add_piece(burst, bytes, length))
		return TX_BUILD_NO_ROOM;
	packing->icrc = wire_icrc_continue(packing->icrc, bytes, length);
	return TX_BUILD_OK;
}

static enum tx_build_result add_list(struct eng_qp *qp, struct eng_burst *burst,
				     const struct payload *payload, uint32_t length,
				     struct packing *packing)
{
	uint32_t done = 0;

	while (done < length) {
		uint32_t piece;
		enum tx_build_result result;
		const uint8_t *bytes = sge_piece(qp, payload->list, payload->count,
						 payload->offset + done, length - done, &piece);

		if (!bytes)
			return TX_BUILD_ERROR;
		result = add_stretch(burst, bytes, piece, payload->stable, packing);
		if (result != TX_BUILD_OK)
			return result;
		done += piece;
	}
	return TX_BUILD_OK;
}

/* Adds pad and ICRC. */
static enum tx_build_result add_end(struct eng_burst *burst, uint32_t pad, struct packing *packing)
{
	static const uint8_t zeros[4];

	memcpy(burst->staging + burst->staged, zeros, sizeof(zeros));
	burst->staged += pad;
	if (!finish_staged(burst, packing, WIRE_ICRC_BYTES))
		return TX_BUILD_NO_ROOM;
	wire_icrc_finish(packing->icrc, burst->staging + burst->staged - WIRE_ICRC_BYTES);
	return TX_BUILD_OK;
}

/* Adds a packet whose payload lies in several ranges of memory, or is sent by reference. */
static __attribute__((noinline)) enum tx_build_result
add_parts(struct eng_qp *qp, struct eng_burst *burst, uint32_t header_bytes,
	  const struct payload *payload, uint32_t bytes)
{
	struct packing packing = { .bytes = bytes, .staged = burst->staged };
	uint32_t length = payload->length;
	enum tx_build_result result;

	burst->staged += header_bytes;
	result = payload->kind == PAYLOAD_BYTES
			 ? add_stretch(burst, payload->bytes, length, payload->stable, &packing)
			 : add_list(qp, burst, payload, length, &packing);
	return result == TX_BUILD_OK ? add_end(burst, message_pad(length), &packing) : result;
}

/* Returns true if the payload is empty or one range of memory that is copied. */
static inline bool is_contiguous(const struct eng_burst *burst, const struct payload *payload)
{
	return payload->length == 0 || (payload->kind == PAYLOAD_BYTES &&
					(!payload->stable || payload->length < burst->gather_from));
}

/* Adds a packet that lies in the staging buffer from end to end, as most small ones do. */
static inline enum tx_build_result add_contiguous(struct eng_burst *burst, uint32_t header_bytes,
						  const struct payload *payload, uint32_t bytes)
{
	uint8_t *packet = burst->staging + burst->staged, *end = packet + header_bytes;

	if (payload->length > 0)
		memcpy(end, payload->bytes, payload->length);
	/* Zeroes the pad; the ICRC overwrites the bytes after it. */
	memset(end + payload->length, 0, WIRE_ICRC_BYTES);
	wire_icrc_put(&burst->path->wire, (uint16_t)(burst->identification + burst->packets),
		      packet, bytes);
	burst->staged += bytes;
	return add_piece(burst, packet, bytes) ? TX_BUILD_OK : TX_BUILD_NO_ROOM;
}

/* Removes an unfinished packet: the pieces of the packets before it have burst->bytes in all. */
static __attribute__((noinline)) void unreserve(struct eng_burst *burst, uint32_t staged)
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

/* Accounts for a packet of this number of bytes that has been added. */
static inline void count_in(struct eng_burst *burst, uint32_t bytes)
{
	if (burst->packets == 0)
		burst->segment = bytes;
	burst->closed = bytes < burst->segment;
	burst->packets++;
	burst->bytes += bytes;
}

/*
 * Checks for room as if all payload were copied, so that tx_build_add() needs no checks of staging.
 */
uint8_t *tx_build_reserve(const struct eng_burst *burst, uint32_t payload_length)
{
	if (burst->staging_bytes - burst->staged < STAGING_SLACK + payload_length)
		return NULL;
	return burst->staging + burst->staged;
}

inline enum tx_build_result tx_build_add(struct eng_qp *qp, struct eng_burst *burst,
					 uint32_t header_bytes, const struct payload *payload)
{
	const uint32_t bytes = tx_build_bytes(header_bytes, payload->length),
		       staged = burst->staged;
	enum tx_build_result result;

	if (!tx_build_fits(burst, bytes))
		return TX_BUILD_NO_ROOM;
	result = is_contiguous(burst, payload) ? add_contiguous(burst, header_bytes, payload, bytes)
					       : add_parts(qp, burst, header_bytes, payload, bytes);
	if (result != TX_BUILD_OK) {
		unreserve(burst, staged);
		return result;
	}
	count_in(burst, bytes);
	return TX_BUILD_OK;
}

inline enum tx_build_result tx_build_add_header_only(struct eng_burst *burst, uint32_t header_bytes)
{
	const uint32_t bytes = header_bytes + (uint32_t)WIRE_ICRC_BYTES;
	uint8_t *packet = burst->staging + burst->staged;

	if (!tx_build_fits(burst, bytes) || !add_piece(burst, packet, bytes))
		return TX_BUILD_NO_ROOM;
	wire_icrc_put(&burst->path->wire, (uint16_t)(burst->identification + burst->packets),
		      packet, bytes);
	burst->staged += bytes;
	count_in(burst, bytes);
	return TX_BUILD_OK;
}
