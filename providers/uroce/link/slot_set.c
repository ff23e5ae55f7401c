/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "slot_set.h"

static uint64_t word_bit(unsigned int number)
{
	return UINT64_C(1) << number % 64;
}

bool link_slot_set_has(const struct link_slot_set *set, unsigned int slot)
{
	return atomic_load_explicit(&set->word[slot / 64], memory_order_acquire) & word_bit(slot);
}

void link_slot_set_add(struct link_slot_set *set, unsigned int slot)
{
	atomic_fetch_or_explicit(&set->word[slot / 64], word_bit(slot), memory_order_release);
	atomic_fetch_or_explicit(&set->nonzero_words, word_bit(slot / 64), memory_order_release);
}

void link_slot_set_remove(struct link_slot_set *set, unsigned int slot)
{
	atomic_fetch_and_explicit(&set->word[slot / 64], ~word_bit(slot), memory_order_release);
}

unsigned int link_slot_set_next(const struct link_slot_set *set, unsigned int slot)
{
	unsigned int number = slot / 64;
	uint64_t bits, words;

	if (slot >= LINK_SLOTS)
		return LINK_SLOTS;
	bits = atomic_load_explicit(&set->word[number], memory_order_acquire) &
	       ~(word_bit(slot) - 1);
	if (bits)
		return number * 64 + (unsigned int)__builtin_ctzll(bits);
	words = atomic_load_explicit(&set->nonzero_words, memory_order_acquire);
	/* Without the bits up to number: in two shifts each, because a shift by 64 is undefined. */
	for (words = words >> number >> 1 << 1 << number; words; words &= words - 1) {
		number = (unsigned int)__builtin_ctzll(words);
		bits = atomic_load_explicit(&set->word[number], memory_order_acquire);
		if (bits)
			return number * 64 + (unsigned int)__builtin_ctzll(bits);
	}
	return LINK_SLOTS;
}
