/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Bytes of an RDMA WRITE into memory that the application watches: it spins on the last of them, as
 * adapters write them last, and once they are there all of the memory is its own again, to write
 * what it likes.  So the last bytes are written behind all others, at once, and nothing is written
 * after them.  memcpy() promises none of that: with registers of 64 bytes it writes a message of 64
 * bytes twice, and a thread that is interrupted between takes back what the application has
 * written.
 */
#ifndef UROCE_ENGINE_PLACE_H
#define UROCE_ENGINE_PLACE_H

#include <stdint.h>
#include <string.h>

struct place_word {
	uint64_t value;
} __attribute__((packed, may_alias));
struct place_half {
	uint32_t value;
} __attribute__((packed, may_alias));

/* memory and bytes do not overlap; length is not 0. */
static inline void place_write(void *memory, const uint8_t *bytes, uint32_t length)
{
	uint32_t last = length >= 8 ? 8 : length >= 4 ? 4 : 1, before = length - last;
	uint8_t *to = (uint8_t *)memory + before;

	if (before > 0)
		memcpy(memory, bytes, before);
	bytes += before;
	__atomic_thread_fence(__ATOMIC_RELEASE);
	/* Volatile, so that it is one store and stays behind the others. */
	if (last == 8)
		((volatile struct place_word *)to)->value =
			((const struct place_word *)bytes)->value;
	else if (last == 4)
		((volatile struct place_half *)to)->value =
			((const struct place_half *)bytes)->value;
	else
		*(volatile uint8_t *)to = *bytes;
}

#endif
