/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "window.h"

#include <assert.h>
#include <stddef.h>

#include "wire/bytes.h"

static uint32_t place_of(const uint8_t *gid)
{
	uint64_t mixed =
		(wire_get_be64(gid) ^ wire_get_be64(gid + 8)) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(mixed >> 32) % WINDOW_PLACES;
}

bool cm_window_enter(struct window *window, struct window_node *node, const uint8_t *gid)
{
	struct window_place *place;

	assert(node->how == WINDOW_OUT);
	node->place = place_of(gid);
	place = &window->place[node->place];
	if (place->count < window->limit) {
		place->count++;
		node->how = WINDOW_COUNTS;
		return true;
	}
	node->how = WINDOW_WAITS;
	node->next = NULL;
	node->before = place->last;
	if (place->last)
		place->last->next = node;
	else
		place->first = node;
	place->last = node;
	return false;
}

static void unlink_waiting(struct window_place *place, struct window_node *node)
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

void cm_window_leave(struct window *window, struct window_node *node)
{
	struct window_place *place = &window->place[node->place];

	if (node->how == WINDOW_COUNTS) {
		assert(place->count > 0);
		place->count--;
	} else if (node->how == WINDOW_WAITS) {
		unlink_waiting(place, node);
	}
	node->how = WINDOW_OUT;
}

struct window_node *cm_window_next(struct window *window, uint32_t number)
{
	struct window_place *place = &window->place[number];
	struct window_node *node = place->first;

	if (!node || place->count >= window->limit)
		return NULL;
	unlink_waiting(place, node);
	place->count++;
	node->how = WINDOW_COUNTS;
	return node;
}
