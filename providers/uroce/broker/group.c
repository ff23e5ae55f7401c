/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "group.h"

#include <assert.h>

_Static_assert(GROUP_MEMBERS_MAX < STEER_NONE, "an index does not fit");

static void set_owner(struct broker_group *group, unsigned int index, unsigned int owner)
{
	group->owner[index] = (uint16_t)owner;
	if (owner == GROUP_UNKNOWN)
		group->unknown++;
	else
		group->index[owner] = (uint16_t)index;
}

static void unset_owner(struct broker_group *group, unsigned int index)
{
	unsigned int owner = group->owner[index];

	if (owner == GROUP_UNKNOWN)
		group->unknown--;
	else
		group->index[owner] = STEER_NONE;
}

void group_reset_owners(struct broker_group *group, unsigned int count)
{
	assert(count <= GROUP_MEMBERS_MAX);
	group->count = (uint16_t)count;
	group->unknown = 0;
	for (unsigned int owner = 0; owner < GROUP_OWNERS; owner++)
		group->index[owner] = STEER_NONE;
	for (unsigned int index = 0; index < count; index++)
		set_owner(group, index, GROUP_UNKNOWN);
}

void group_init(struct broker_group *group, unsigned int count)
{
	group_reset_owners(group, count);
}

uint16_t group_add_member(struct broker_group *group, unsigned int owner)
{
	assert(owner < GROUP_UNKNOWN && group->index[owner] == STEER_NONE);
	if (group->count == GROUP_MEMBERS_MAX)
		return STEER_NONE;
	set_owner(group, group->count, owner);
	return group->count++;
}

void group_add_unknown(struct broker_group *group, unsigned int count)
{
	assert(count <= GROUP_MEMBERS_MAX);
	while (group->count < count)
		set_owner(group, group->count++, GROUP_UNKNOWN);
}

void group_record_owner(struct broker_group *group, unsigned int index, unsigned int owner)
{
	assert(owner < GROUP_UNKNOWN);
	/* The index may come from a forged or outdated reply to a probe. */
	if (index >= group->count || group->owner[index] == owner)
		return;
	if (group->index[owner] != STEER_NONE) {
		group->owner[group->index[owner]] = GROUP_UNKNOWN;
		group->unknown++;
	}
	unset_owner(group, index);
	set_owner(group, index, owner);
}

void group_fill_table(const struct broker_group *group, const struct broker_slots *slots,
		      struct steer_table *table)
{
	uint16_t sink = group->index[GROUP_SINK];

	steer_clear(table, group->index[GROUP_GSI], sink);
	for (unsigned int slot = 0; slot < UROCE_BROKER_SLOTS; slot++)
		if (slots_holder(slots, slot) != SLOTS_NO_CLIENT)
			table->member[slot] = group->index[slots->slot[slot].first];
}
