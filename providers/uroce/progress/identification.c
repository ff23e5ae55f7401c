/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "identification.h"

enum {
	PLACES = 128, /* segments of one call, at most */
	NEAR = 4096,  /* a counter that serves other traffic as well */
	ODD_ENOUGH = 8,
};

static bool goes_with(const struct identification *peer, uint16_t id)
{
	int16_t distance = (int16_t)(id - peer->last);

	switch (peer->kind) {
	case IDENTIFICATION_PLACES:
		return id < PLACES;
	case IDENTIFICATION_COUNTER:
		return distance >= -NEAR && distance <= NEAR;
	default:
		return true;
	}
}

bool identification_plausible(struct identification *peer, uint16_t id)
{
	if (!goes_with(peer, id)) {
		if (++peer->odd < ODD_ENOUGH)
			return false;
		peer->kind = IDENTIFICATION_UNKNOWN;
	}
	if (peer->kind == IDENTIFICATION_UNKNOWN)
		peer->kind = id < PLACES ? IDENTIFICATION_PLACES : IDENTIFICATION_COUNTER;
	peer->last = id;
	peer->odd = 0;
	return true;
}
