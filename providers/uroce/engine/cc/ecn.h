/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Explicit congestion notification (annex A17).  Packets that have met a long queue come marked
 * (WIRE_CE).  Whoever gets one tells its sender so by a CNP, at most one in 50 us for a QP: the
 * responder for requests, the requester for READ responses.
 *
 * Beside that the responder echoes marks of SENDs and WRITEs by BECN in its ACKs, which tells how
 * much was marked and not only that something was.  The bit has been there for that from the
 * beginning (annex A10), the ICRC leaves it out, and adapters that do not use it skip it.  An ACK
 * is for several packets, so it has BECN when at least half of them were marked, and what that is
 * too much or too little counts for the next ones.  A peer that has been seen to echo goes by that;
 * CNPs are then about READ responses only.
 *
 * Datagram QPs send none and obey none.  One of them sends to many, each over a path of its own,
 * and has no window that could be cut; the CNP names the QP alone, not the path.
 */
#ifndef UROCE_ENGINE_CC_ECN_H
#define UROCE_ENGINE_CC_ECN_H

#include "engine/qp_priv.h"

/* A packet has come marked; it is for the receivers after this. */
void ecn_marked(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now);
/* BECN for an ACK of psn that is about to leave, or 0. */
uint32_t ecn_echo(struct eng_qp *qp, uint32_t psn);
/* A CNP has come. */
void ecn_notified(struct eng_qp *qp);

static inline bool ecn_cnp_pending(const struct eng_qp *qp)
{
	return __builtin_expect(qp->ecn.cnp_pending, 0);
}

enum eng_tx ecn_transmit(struct eng_qp *qp, struct eng_burst *burst);
void ecn_rollback(struct eng_qp *qp);
/* What was owed to the peer of an earlier connection is not any more. */
void ecn_reset(struct eng_qp *qp);

#endif
