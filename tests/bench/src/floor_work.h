/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Work that RoCEv2 requires for each packet in any implementation: its headers and its payload come
 * from different places, a CRC covers both on either side, and the payload is copied to its own
 * place.  A packet is HEADER, payload, CRC.
 */
#ifndef BENCH_FLOOR_WORK_H
#define BENCH_FLOOR_WORK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum {
	WORK_HEADER = 28, /* BTH and RETH */
	WORK_CRC = 4,
	WORK_MAX_PACKETS = 128,
	WORK_MAX_PIECES = 2 * WORK_MAX_PACKETS + 1,
};

/* Bytes between two payloads: the CRC of one packet, the header of the next one. */
struct work {
	uint8_t between[WORK_MAX_PACKETS + 1][WORK_CRC + WORK_HEADER];
	struct iovec pieces[WORK_MAX_PIECES];
};

/*
 * Makes packets of size bytes each, whose payloads follow each other at payload.  Stores them in
 * work->pieces and returns the number of pieces.
 */
unsigned int work_send(struct work *work, uint8_t *payload, size_t size, unsigned int packets);

/* Copies the payloads, one after the other, to place; ends the process if a CRC is wrong. */
void work_receive(const uint8_t *packets, size_t bytes, size_t size, uint8_t *place);

#endif
