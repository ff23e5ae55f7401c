/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "slots.h"

#include <assert.h>
#include <string.h>

#define NONE UINT16_MAX

_Static_assert(UROCE_BROKER_SLOTS <= NONE, "a slot does not fit");

void slots_init(struct broker_slots *slots)
{
	memset(slots, 0, sizeof(*slots));
	slots->oldest = NONE;
	slots->newest = NONE;
}

void slots_set_start(struct broker_slots *slots, uint32_t slot)
{
	slots->first_proposed = slot % UROCE_BROKER_SLOTS;
}

static uint32_t find_unused(const struct broker_slots *slots)
{
	for (uint32_t i = 0; i < UROCE_BROKER_SLOTS; i++) {
		uint32_t slot = (slots->first_proposed + i) % UROCE_BROKER_SLOTS;

		if (!slots->slot[slot].used)
			return slot;
	}
	return UROCE_BROKER_SLOTS;
}

uint32_t slots_propose(const struct broker_slots *slots)
{
	uint32_t unused = slots->resting < SLOTS_REST_MIN ? find_unused(slots) : UROCE_BROKER_SLOTS;

	if (unused < UROCE_BROKER_SLOTS)
		return unused;
	if (slots->oldest != NONE)
		return slots->oldest;
	unused = find_unused(slots);
	return unused < UROCE_BROKER_SLOTS ? unused : UROCE_BROKER_NO_SLOT;
}

/* Removes a resting slot from the list; does nothing if the slot is not in it. */
static void unlink_resting(struct broker_slots *slots, uint32_t slot)
{
	uint16_t *from = &slots->oldest, before = NONE;

	while (*from != NONE && *from != slot) {
		before = *from;
		from = &slots->slot[*from].next;
	}
	if (*from == NONE)
		return;
	if (slots->newest == slot)
		slots->newest = before;
	*from = slots->slot[slot].next;
	slots->resting--;
}

static void set_state(struct broker_slots *slots, uint32_t slot, enum slot_state state)
{
	struct slot_entry *entry = &slots->slot[slot];

	if (entry->state == SLOT_FREE)
		unlink_resting(slots, slot);
	slots->absent -= entry->state == SLOT_ABSENT;
	slots->absent += state == SLOT_ABSENT;
	entry->state = (uint8_t)state;
	entry->used = true;
	entry->client = SLOTS_NO_CLIENT;
	entry->next = NONE;
}

bool slots_hold(struct broker_slots *slots, uint32_t slot, uint32_t client, uint32_t first)
{
	struct slot_entry *entry = &slots->slot[slot];

	assert(slot < UROCE_BROKER_SLOTS && first < UROCE_BROKER_SLOTS);
	assert(client != SLOTS_NO_CLIENT);
	if (entry->state == SLOT_HELD)
		return entry->client == client;
	set_state(slots, slot, SLOT_HELD);
	entry->client = client;
	entry->first = (uint16_t)first;
	return true;
}

void slots_mark_absent(struct broker_slots *slots, uint32_t slot)
{
	assert(slot < UROCE_BROKER_SLOTS && slots->slot[slot].state != SLOT_HELD);
	set_state(slots, slot, SLOT_ABSENT);
}

void slots_free(struct broker_slots *slots, uint32_t slot)
{
	assert(slot < UROCE_BROKER_SLOTS);
	if (slots->slot[slot].state == SLOT_FREE)
		return;
	set_state(slots, slot, SLOT_FREE);
	if (slots->newest == NONE)
		slots->oldest = (uint16_t)slot;
	else
		slots->slot[slots->newest].next = (uint16_t)slot;
	slots->newest = (uint16_t)slot;
	slots->resting++;
}

uint32_t slots_count_held(const struct broker_slots *slots, uint32_t client)
{
	uint32_t count = 0;

	for (uint32_t slot = 0; slot < UROCE_BROKER_SLOTS; slot++)
		count += slots_holder(slots, slot) == client;
	return count;
}

uint32_t slots_holder(const struct broker_slots *slots, uint32_t slot)
{
	if (slot >= UROCE_BROKER_SLOTS || slots->slot[slot].state != SLOT_HELD)
		return SLOTS_NO_CLIENT;
	return slots->slot[slot].client;
}
