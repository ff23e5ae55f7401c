/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Which IPv4 identifications may a peer's packets have?  The ICRC covers it, a UDP socket does not
 * show it, so wire_icrc_check() finds the one that makes the ICRC right, if any does.  One damaged
 * packet in 2^16 has such an identification by chance.  But a uroce peer uses 0 to 127 only (its
 * place in a run) or counts up, as others do: what does not go with that is taken for damaged.
 */
#ifndef UROCE_PROGRESS_IDENTIFICATION_H
#define UROCE_PROGRESS_IDENTIFICATION_H

#include <stdbool.h>
#include <stdint.h>

enum identification_kind {
	IDENTIFICATION_UNKNOWN, /* nothing has come yet */
	IDENTIFICATION_PLACES,	/* places in a run */
	IDENTIFICATION_COUNTER,
};

/* What a connected peer has shown; zeroed at first. */
struct identification {
	uint8_t kind; /* enum identification_kind */
	bool odd;     /* the last packet did not go with it: odd_one */
	uint16_t odd_one;
	uint16_t last;
	uint16_t next; /* of a counter: what the next call probably begins with */
};

/* What the first packet of a batch should have, as far as is known. */
static inline uint16_t identification_expected(const struct identification *peer)
{
	return peer->kind == IDENTIFICATION_COUNTER ? peer->next : 0;
}

/* A batch began with id.  Each call of a uroce peer on this host takes one more. */
static inline void identification_began(struct identification *peer, uint16_t id)
{
	peer->next = (uint16_t)(id + 1);
}

/*
 * May a packet with this identification be from the peer?  Notes it.  Two in a row that go with
 * each other, but not with what was seen before, show that the peer has changed.
 */
bool identification_plausible(struct identification *peer, uint16_t id);

#endif
