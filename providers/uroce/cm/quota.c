/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "quota.h"

#include <assert.h>
#include <stddef.h>

#include "wire/bytes.h"

static uint32_t place_of(const uint8_t *gid)
{
	uint64_t mixed =
		(wire_get_be64(gid) ^ wire_get_be64(gid + 8)) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(mixed >> 32) % QUOTA_PLACES;
}

bool cm_quota_enter(struct quota *quota, struct quota_node *node, const uint8_t *gid)
{
	struct quota_place *place;

	assert(node->how == QUOTA_OUT);
	node->place = place_of(gid);
	place = &quota->place[node->place];
	if (place->count < quota->limit) {
		place->count++;
		node->how = QUOTA_COUNTS;
		return true;
	}
	node->how = QUOTA_WAITS;
	node->next = NULL;
	node->before = place->last;
	if (place->last)
		place->last->next = node;
	else
		place->first = node;
	place->last = node;
	return false;
}

static void unlink_waiting(struct quota_place *place, struct quota_node *node)
{
	if (node->before)
		node->before->next = node->next;
	else
		place->first = node->next;
	if (node->next)
		node->next->before = node->before;
	else
		place->last = node->before;
}

void cm_quota_leave(struct quota *quota, struct quota_node *node)
{
	struct quota_place *place = &quota->place[node->place];

	if (node->how == QUOTA_COUNTS) {
		assert(place->count > 0);
		place->count--;
	} else if (node->how == QUOTA_WAITS) {
		unlink_waiting(place, node);
	}
	node->how = QUOTA_OUT;
}

struct quota_node *cm_quota_next(struct quota *quota, uint32_t number)
{
	struct quota_place *place = &quota->place[number];
	struct quota_node *node = place->first;

	if (!node || place->count >= quota->limit)
		return NULL;
	unlink_waiting(place, node);
	place->count++;
	node->how = QUOTA_COUNTS;
	return node;
}
