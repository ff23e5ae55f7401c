/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Which IPv4 identifications may a peer's packets have?  The ICRC covers it, a UDP socket does not
 * show it, so wire_icrc_check() finds the one that makes the ICRC right, if any does.  One damaged
 * packet in 2^16 has such an identification by chance.
 *
 * A sender may put there what it likes, and stacks do (a counter of the flow, a counter of the
 * host for all that it sends, leaps after a pause, random numbers): one that comes as a surprise
 * is by far more often a right packet's than a damaged one's, and is believed.  Only a peer that
 * has shown that its packets have their place in a burst, counted from 0, as uroce's have, cannot
 * have sent another one (Documentation/decisions/icrc.md, with the numbers).
 */
#ifndef UROCE_PROGRESS_IDENTIFICATION_H
#define UROCE_PROGRESS_IDENTIFICATION_H

#include <stdbool.h>
#include <stdint.h>

enum {
	IDENTIFICATION_PLACES = 128, /* packets of a burst, at most */
	/* So many 0 and nothing beyond a place: the peer gives places. */
	IDENTIFICATION_PROOF = 16,
};

enum identification_kind {
	IDENTIFICATION_UNKNOWN, /* as yet */
	IDENTIFICATION_PLACE,	/* the place in a burst */
	IDENTIFICATION_ANY,
};

/* Adapters may make requests and responses by different means, so each is known by itself. */
struct identification_side {
	uint8_t kind; /* enum identification_kind */
	uint8_t zeros;
	uint16_t last;
	uint32_t odd; /* no place, and so refused */
};

/* What a connected peer has shown since it was connected; zeroed at first. */
struct identification {
	uint16_t next;	  /* of a batch's first packet, probably */
	uint32_t damaged; /* packets whose ICRC was wrong with any identification */
	struct identification_side side[2];
};

/* What the first packet of a batch should have, as far as is known. */
static inline uint16_t identification_expected(const struct identification *peer)
{
	return peer->next;
}

/*
 * A batch began with id: a place, then the next begins anew, or a counter's, which takes one more
 * for each call if the peer is a uroce on this host.
 */
static inline void identification_began(struct identification *peer, uint16_t id)
{
	peer->next = id < IDENTIFICATION_PLACES ? 0 : (uint16_t)(id + 1);
}

/* A packet's ICRC was wrong. */
static inline void identification_damaged(struct identification *peer)
{
	peer->damaged++;
}

/* Is nothing to be known of the peer's packets any more? */
static inline bool identification_is_any(const struct identification *peer)
{
	return peer->side[0].kind == IDENTIFICATION_ANY && peer->side[1].kind == IDENTIFICATION_ANY;
}

/* May a packet with this identification be from the peer?  Notes it. */
bool identification_believed(struct identification *peer, bool request, uint16_t id);

#endif
