/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "identification.h"

enum {
	/*
	 * Number of packets with a wrong ICRC for which one unexpected ID is attributed to damage,
	 * too: about one damaged packet in 65536 has a right ICRC with another ID.  If more IDs are
	 * unexpected, the cause is the peer.
	 */
	BAD_ICRC_PER_UNEXPECTED_ID = 1024,
};

/* A sender may number a whole message consecutively, beyond what one of its calls can hold. */
static bool is_next_of_message(const struct identification_side *side, uint16_t id)
{
	return (uint16_t)(id - side->last - 1) < IDENTIFICATION_PLACES;
}

static void learn_kind(struct identification_side *side, uint16_t id)
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
		learn_kind(side, id);
	} else if (id >= IDENTIFICATION_PLACES) {
		if (!is_next_of_message(side, id) &&
		    side->odd <= peer->damaged / BAD_ICRC_PER_UNEXPECTED_ID) {
			side->odd++;
			return false;
		}
		side->kind = IDENTIFICATION_ANY;
	}
	side->last = id;
	return true;
}
