/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Sets of slots */
#ifndef UROCE_LINK_SLOT_SET_H
#define UROCE_LINK_SLOT_SET_H

#include <stdatomic.h>
#include <stdbool.h>

#include "link.h"

/* A set of slots that one thread iterates over while others change it */
struct link_slot_set {
	atomic_uint_fast64_t nonzero_words; /* bit i: word i is not 0, or was not 0 before */
	atomic_uint_fast64_t word[LINK_SLOTS / 64];
};

_Static_assert(LINK_SLOTS <= 64 * 64, "a word of words");

bool link_slot_set_has(const struct link_slot_set *set, unsigned int slot);
void link_slot_set_add(struct link_slot_set *set, unsigned int slot);
void link_slot_set_remove(struct link_slot_set *set, unsigned int slot);
/* Returns the lowest slot of the set that is not below slot, or LINK_SLOTS. */
unsigned int link_slot_set_next(const struct link_slot_set *set, unsigned int slot);

#endif
