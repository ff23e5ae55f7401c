/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Which IPv4 identifications may a peer's packets have?  The ICRC covers it, a UDP socket does not
 * show it, so wire_icrc_check() finds the one that makes the ICRC right, if any does.  One damaged
 * packet in 2^16 has such an identification by chance.  But a uroce peer uses 0 to 127 only (its
 * place in a run), and others count up: what does not go with that is taken for damaged.
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
	uint8_t odd;  /* packets in a row that did not go with it */
	uint16_t last;
};

/*
 * May a packet with this identification be from the peer?  Notes it.  After several in a row that
 * do not go with what was seen before, the peer has changed, and what it does now is right.
 */
bool identification_plausible(struct identification *peer, uint16_t id);

#endif
