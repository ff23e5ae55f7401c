/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Which two flows are the directions of one connection.  Known for sure from REQ and REP; else
 * guessed from what the two have in common: the PSNs of one's responses are those of the other's
 * requests, the UDP source port is the same, as rxe and uroce have it, or even the one that both
 * queue pair numbers give.
 */
#ifndef UROCE_TRACE_PAIRING_H
#define UROCE_TRACE_PAIRING_H

#include "cm_log.h"
#include "flow.h"

/* How a flow's peer was found; pairing_name() for the reader. */
enum pairing_by {
	PAIRING_NONE, /* one direction only */
	PAIRING_CM,
	PAIRING_PSN,
	PAIRING_PORT,
};
const char *pairing_name(enum pairing_by by);

/*
 * Sets peer, and src_qpn where it is known, of all flows; by has room for flows->count and gets how
 * each was found.
 */
void pairing_find(struct flows *flows, const struct cm_log *log, enum pairing_by *by);

#endif
