/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * READ responses are not acknowledged, so nothing tells the responder how fast the requester takes
 * them, and one request may ask for more than any socket buffer holds.  So they are paced: a burst
 * that a default socket buffer holds goes at once, the rest at a rate that grows with each READ
 * that went through and halves when the requester asks again for what was lost.
 */
#ifndef UROCE_ENGINE_PACING_H
#define UROCE_ENGINE_PACING_H

#include <stdbool.h>
#include <stdint.h>

struct pacing {
	uint64_t filled_at; /* ns */
	int64_t tokens;	    /* bytes that may go now */
	uint32_t rate;	    /* bytes per microsecond */
};

void pacing_start(struct pacing *pacing, uint64_t now);
/* May a run go, or the last bytes that are left?  Brings the tokens up to date. */
bool pacing_open(struct pacing *pacing, uint64_t left, uint64_t now);
/* When it may, seen from the last pacing_open(); UINT64_MAX when it may already. */
uint64_t pacing_deadline(const struct pacing *pacing, uint64_t left);
void pacing_spent(struct pacing *pacing, uint32_t bytes);
/* A READ has been answered to its end; it was asked for again. */
void pacing_went_well(struct pacing *pacing);
void pacing_lost(struct pacing *pacing);

#endif
