/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "floor_work.h"

#include <isa-l/crc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

unsigned int work_send(struct work *work, uint8_t *payload, size_t size, unsigned int packets)
{
	size_t length = size - WORK_HEADER - WORK_CRC;
	unsigned int count = 0;

	work->pieces[count].iov_base = work->between[0] + WORK_CRC;
	work->pieces[count++].iov_len = WORK_HEADER;
	for (unsigned int i = 0; i < packets; i++, payload += length) {
		uint32_t crc = crc32_gzip_refl(0, work->between[i] + WORK_CRC, WORK_HEADER);

		crc = crc32_gzip_refl(crc, payload, length);
		memcpy(work->between[i + 1], &crc, WORK_CRC);
		work->pieces[count].iov_base = payload;
		work->pieces[count++].iov_len = length;
		work->pieces[count].iov_base = work->between[i + 1];
		work->pieces[count++].iov_len = WORK_CRC + (i + 1 < packets ? WORK_HEADER : 0);
	}
	return count;
}

void work_receive(const uint8_t *packets, size_t bytes, size_t size, uint8_t *place)
{
	size_t length = size - WORK_HEADER - WORK_CRC;

	for (; bytes >= size; packets += size, bytes -= size, place += length) {
		if (memcmp(&(uint32_t){ crc32_gzip_refl(0, packets, size - WORK_CRC) },
			   packets + size - WORK_CRC, WORK_CRC) != 0) {
			fprintf(stderr, "a packet was damaged\n");
			exit(1);
		}
		memcpy(place, packets + WORK_HEADER, length);
	}
}
