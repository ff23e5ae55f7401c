/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Copies the payload of an RDMA WRITE to memory that the application polls: it spins on the last
 * bytes, since adapters write them last, and may write to all of the memory as soon as they are
 * there. So the last bytes are written after all others, in one store, and nothing is written after
 * them. memcpy() guarantees none of that: with 64-byte registers it writes a message of 64 bytes
 * twice, and a thread that is interrupted in between overwrites what the application has written.
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

/* memory and bytes must not overlap; length must not be 0. */
static inline void copy_last_word_last(void *memory, const uint8_t *bytes, uint32_t length)
{
	uint32_t last = length >= 8 ? 8 : length >= 4 ? 4 : 1, before = length - last;
	uint8_t *to = (uint8_t *)memory + before;

	if (before > 0)
		memcpy(memory, bytes, before);
	bytes += before;
	__atomic_thread_fence(__ATOMIC_RELEASE);
	/* Volatile, so that it is one store and stays after the others. */
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
