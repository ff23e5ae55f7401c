/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Bytes of an RDMA WRITE into memory that the application watches: it spins on the last of them, as
 * adapters write them last, and once they are there all of the memory is its own again, to write
 * what it likes.  So the last bytes are written behind all others, at once, and nothing is written
 * after them.  memcpy() promises none of that: with registers of 64 bytes it writes a message of 64
 * bytes twice, and a thread that is interrupted between takes back what the application has
 * written.
 */
#ifndef UROCE_ENGINE_BASE_ORDERED_COPY_H
#define UROCE_ENGINE_BASE_ORDERED_COPY_H

#include <stdint.h>
#include <string.h>

struct unaligned_u64 {
	uint64_t value;
} __attribute__((packed, may_alias));
struct unaligned_u32 {
	uint32_t value;
} __attribute__((packed, may_alias));

/* memory and bytes do not overlap; length is not 0. */
static inline void copy_last_word_last(void *memory, const uint8_t *bytes, uint32_t length)
{
	uint32_t last = length >= 8 ? 8 : length >= 4 ? 4 : 1, before = length - last;
	uint8_t *to = (uint8_t *)memory + before;

	if (before > 0)
		memcpy(memory, bytes, before);
	bytes += before;
	__atomic_thread_fence(__ATOMIC_RELEASE);
	/* Volatile, so that it is one store and stays behind the others. */
	if (last == 8)
		((volatile struct unaligned_u64 *)to)->value =
			((const struct unaligned_u64 *)bytes)->value;
	else if (last == 4)
		((volatile struct unaligned_u32 *)to)->value =
			((const struct unaligned_u32 *)bytes)->value;
	else
		*(volatile uint8_t *)to = *bytes;
}

#endif
