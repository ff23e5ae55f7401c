/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "identification.h"

enum {
	PLACES = 128, /* segments of one call, at most */
	NEAR = 4096,  /* a counter that serves other traffic as well */
};

static bool is_near(uint16_t a, uint16_t b)
{
	int16_t distance = (int16_t)(a - b);

	return distance >= -NEAR && distance <= NEAR;
}

static bool goes_with(const struct identification *peer, uint16_t id)
{
	switch (peer->kind) {
	case IDENTIFICATION_PLACES:
		return id < PLACES;
	case IDENTIFICATION_COUNTER:
		return is_near(id, peer->last);
	default:
		return true;
	}
}

bool identification_plausible(struct identification *peer, uint16_t id)
{
	if (!goes_with(peer, id)) {
		bool changed = peer->odd && is_near(id, peer->odd_one);

		peer->odd = true;
		peer->odd_one = id;
		if (!changed)
			return false;
		peer->kind = IDENTIFICATION_UNKNOWN;
	}
	if (peer->kind == IDENTIFICATION_UNKNOWN)
		peer->kind = id < PLACES ? IDENTIFICATION_PLACES : IDENTIFICATION_COUNTER;
	peer->last = id;
	peer->odd = false;
	return true;
}
