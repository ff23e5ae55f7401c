/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * READ responses are not acknowledged, so nothing tells the responder how fast the requester takes
 * them, and one request may ask for more than any socket buffer holds.  So they are paced: a burst
 * that a default socket buffer holds goes at once, the rest at a rate that grows with each READ
 * that went through and halves when the requester asks again for what was lost.
 *
 * On a network the rate goes far lower, as what is in the way there is slower than a socket, and is
 * found as DCQCN does it (Zhu et al., SIGCOMM 2015): a loss, or a CNP, cuts it by half of the part
 * of the time in which there were such of late; without any it goes back half of the way to what it
 * was, again and again, and then beyond; after a loss only by and by.  What may go at once is what
 * the rate brings in a short time.
 */
#ifndef UROCE_ENGINE_PACING_H
#define UROCE_ENGINE_PACING_H

#include <stdbool.h>
#include <stdint.h>

struct pacing {
	uint64_t filled_at; /* ns */
	int64_t tokens;	    /* bytes that may go now */
	uint32_t rate;	    /* bytes per millisecond */
	/* On a network. */
	bool network;
	bool marks;	     /* CNPs may come */
	bool begins;	     /* no congestion so far */
	bool hit, lost;	     /* a CNP has come, or something was lost, since the rate was cut */
	uint8_t steps;	     /* up, since the last cut */
	uint16_t alpha;	     /* part of the time with hits, in 1024ths */
	uint32_t target;     /* rate to come back to */
	uint64_t stepped_at; /* ns */
};

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
void pacing_went_well(struct pacing *pacing);
void pacing_lost(struct pacing *pacing);
void pacing_congested(struct pacing *pacing);

#endif
