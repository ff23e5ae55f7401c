/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "ip_id.h"

enum {
	/*
	 * Number of packets with a wrong ICRC for which one unexpected ID is attributed to damage,
	 * too: about one damaged packet in 65536 has a right ICRC with another ID.  If more IDs are
	 * unexpected, the cause is the peer.
	 */
	BAD_ICRC_PER_UNEXPECTED_ID = 1024,
};

/*
 * Returns true if id follows the last one closely: a sender may number a whole message
 * consecutively, with more packets than one of its calls can hold.
 */
static bool is_next_of_message(const struct ip_id_dir *side, uint16_t id)
{
	return (uint16_t)(id - side->last - 1) < IP_ID_INDEX_MAX;
}

static void learn_kind(struct ip_id_dir *side, uint16_t id)
{
	if (id >= IP_ID_INDEX_MAX)
		side->kind = IP_ID_ANY;
	else if (id == 0 && ++side->zeros == IP_ID_ZEROS_NEEDED)
		side->kind = IP_ID_INDEX;
}

bool ip_id_check(struct ip_id_history *peer, bool request, uint16_t id)
{
	struct ip_id_dir *side = &peer->side[request];

	if (side->kind == IP_ID_ANY)
		return true;
	if (side->kind == IP_ID_UNKNOWN) {
		learn_kind(side, id);
	} else if (id >= IP_ID_INDEX_MAX) {
		if (!is_next_of_message(side, id) &&
		    side->odd <= peer->damaged / BAD_ICRC_PER_UNEXPECTED_ID) {
			side->odd++;
			return false;
		}
		side->kind = IP_ID_ANY;
	}
	side->last = id;
	return true;
}
