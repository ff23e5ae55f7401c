/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * READ responses are not acknowledged, so nothing tells the responder how fast the requester takes
 * them, and one request may ask for more than any socket buffer holds.  So they are paced: a burst
 * that a default socket buffer holds goes at once, the rest at a rate that grows with each READ
 * that went through and halves when the requester asks again for what was lost.
 *
 * On a network the rate goes far lower, as what is in the way there is slower than a socket.  It
 * changes once in an interval: it doubles until the first congestion, and then grows by an amount,
 * by which flows come to share alike, and by a part of itself, which fast networks need; a CNP or a
 * loss takes a fifth of it (RFC 8511).  What may go at once is what the rate brings in an interval.
 */
#ifndef UROCE_ENGINE_CC_PACING_H
#define UROCE_ENGINE_CC_PACING_H

#include <stdbool.h>
#include <stdint.h>

enum pacing_phase {
	PACING_HOST,	 /* the rate changes with each READ */
	PACING_DOUBLING, /* on a network, before any congestion */
	PACING_STEADY,	 /* on a network, later */
};

struct pacing {
	uint64_t filled_at;  /* ns */
	int64_t tokens;	     /* bytes that may go now */
	uint32_t rate;	     /* bytes per millisecond */
	uint64_t stepped_at; /* ns; when the rate changed last */
	enum pacing_phase phase;
	bool marks;	   /* CNPs may come */
	bool is_congested; /* since then a CNP has come, or a READ was requested again */
};

static inline bool pacing_is_on_network(const struct pacing *pacing)
{
	return pacing->phase != PACING_HOST;
}

void pacing_start(struct pacing *pacing, uint64_t now);
/* ... on a network; with marks it begins slowly. */
void pacing_start_network(struct pacing *pacing, bool marks, uint64_t now);
/* How many bytes, beyond one packet, may go of what pacing_open() has let go. */
int64_t pacing_allowance(const struct pacing *pacing);
/* May a burst go, or the last bytes that are left?  Brings the tokens up to date. */
bool pacing_open(struct pacing *pacing, uint64_t left, uint64_t now);
/* When it may, seen from the last pacing_open(); UINT64_MAX when it may already. */
uint64_t pacing_deadline(const struct pacing *pacing, uint64_t left);
void pacing_spent(struct pacing *pacing, uint32_t bytes);
/* A READ has been answered to its end; it was asked for again; a CNP has come. */
void pacing_read_done(struct pacing *pacing);
void pacing_lost(struct pacing *pacing);
void pacing_congested(struct pacing *pacing);
/* Asserts that the rate is within its limits. */
void pacing_check(const struct pacing *pacing);

#endif
