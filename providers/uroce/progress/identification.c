/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "identification.h"

enum {
	/*
	 * Number of packets with a wrong ICRC for which one unexpected ID is attributed to damage,
	 * too: about one damaged packet in 65536 has a right ICRC with another ID.  If more IDs are
	 * unexpected, the cause is the peer.
	 */
	DAMAGED_FOR_ONE_ODD = 1024,
};

/* A sender may number a whole message consecutively, beyond what one of its calls can hold. */
static bool goes_on(const struct identification_side *side, uint16_t id)
{
	return (uint16_t)(id - side->last - 1) < IDENTIFICATION_PLACES;
}

static void learn(struct identification_side *side, uint16_t id)
{
	if (id >= IDENTIFICATION_PLACES)
		side->kind = IDENTIFICATION_ANY;
	else if (id == 0 && ++side->zeros == IDENTIFICATION_PROOF)
		side->kind = IDENTIFICATION_PLACE;
}

bool identification_believed(struct identification *peer, bool request, uint16_t id)
{
	struct identification_side *side = &peer->side[request];

	if (side->kind == IDENTIFICATION_ANY)
		return true;
	if (side->kind == IDENTIFICATION_UNKNOWN) {
		learn(side, id);
	} else if (id >= IDENTIFICATION_PLACES) {
		if (!goes_on(side, id) && side->odd <= peer->damaged / DAMAGED_FOR_ONE_ODD) {
			side->odd++;
			return false;
		}
		side->kind = IDENTIFICATION_ANY;
	}
	side->last = id;
	return true;
}
