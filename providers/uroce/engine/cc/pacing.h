/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * READ responses are not acknowledged, so the responder does not know how fast the requester
 * receives them, and one READ may be larger than any socket buffer.  So they are paced: as many
 * bytes as a default socket buffer holds are sent at once, the rest at a rate that increases with
 * each READ completed and is halved when the requester requests lost responses again.
 *
 * On a network the rate can be much lower than on a host, since the links are slower than a socket.
 * It changes once in an interval.  It doubles until the first congestion.  Then it increases by a
 * constant, which makes flows converge to a fair share, and by a fraction of itself, which fast
 * networks need; a CNP reduces it by a fifth (RFC 8511), and so does a loss.  The bytes that may be
 * sent at once are those of one interval.
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
	uint64_t filled_at;  /* ns; when tokens was computed last */
	int64_t tokens;	     /* bytes that may be sent now */
	uint32_t rate;	     /* bytes per millisecond */
	uint64_t stepped_at; /* ns; when the rate changed last */
	enum pacing_phase phase;
	bool marks;	   /* packets are sent with ECT, so CNPs can arrive */
	bool is_congested; /* a CNP or a repeated READ request has arrived since stepped_at */
};

static inline bool pacing_is_on_network(const struct pacing *pacing)
{
	return pacing->phase != PACING_HOST;
}

void pacing_start(struct pacing *pacing, uint64_t now);
/* Starts pacing for a network path; marks: packets are sent with ECT, so the rate starts low. */
void pacing_start_network(struct pacing *pacing, bool marks, uint64_t now);
/* Bytes that may be sent once pacing_open() returns true; the last packet may exceed them. */
int64_t pacing_allowance(const struct pacing *pacing);
/* Updates the tokens.  Returns true if a burst, or all of the left bytes, may be sent. */
bool pacing_open(struct pacing *pacing, uint64_t left, uint64_t now);
/* Time in ns at which pacing_open() will return true; UINT64_MAX: it already does. */
uint64_t pacing_deadline(const struct pacing *pacing, uint64_t left);
void pacing_spent(struct pacing *pacing, uint32_t bytes);
/*
 * To be called when all responses of a READ were sent; when a READ was requested again; when a CNP
 * arrived.
 */
void pacing_read_done(struct pacing *pacing);
void pacing_lost(struct pacing *pacing);
void pacing_congested(struct pacing *pacing);
/* Asserts that the rate is within its limits. */
void pacing_check(const struct pacing *pacing);

#endif
