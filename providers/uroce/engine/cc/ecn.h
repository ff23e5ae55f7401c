/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Explicit congestion notification (annex A17).  Routers mark packets in long queues (WIRE_CE). The
 * receiver of a marked packet sends a CNP to its sender, at most one per 50 us and QP: the
 * responder for requests, the requester for READ responses.
 *
 * In addition the responder echoes marks of SENDs and WRITEs by BECN in its ACKs, which reports the
 * number of marks and not only their existence.  Annex A10 defines the bit for that purpose, the
 * ICRC does not cover it, and adapters that do not use it ignore it.  An ACK covers several
 * packets, so it has BECN if at least half of them were marked, and the rounding error is carried
 * over to the next ones.  Once a peer has echoed a mark, the requester obeys BECN only, and a CNP
 * concerns READ responses only.
 *
 * UD QPs neither send nor obey CNPs: they send to many destinations, on different paths, and have
 * no window to reduce; a CNP names the QP alone, not the path.
 */
#ifndef UROCE_ENGINE_CC_ECN_H
#define UROCE_ENGINE_CC_ECN_H

#include "engine/qp_priv.h"

/*
 * Handles a marked packet: counts the mark for ecn_echo(), and makes a CNP pending if the last one
 * is old enough.  To be called before the receive functions.
 */
void ecn_marked(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now);
/* Returns BECN for an ACK of psn that is about to be sent, or 0; counts its marks as echoed. */
uint32_t ecn_echo(struct eng_qp *qp, uint32_t psn);
/* Handles a CNP. */
void ecn_notified(struct eng_qp *qp);

static inline bool ecn_cnp_pending(const struct eng_qp *qp)
{
	return __builtin_expect(qp->ecn.cnp_pending, 0);
}

enum eng_tx ecn_transmit(struct eng_qp *qp, struct eng_burst *burst);
void ecn_rollback(struct eng_qp *qp);
/* Cancels a CNP that is pending for the peer of an earlier connection. */
void ecn_reset(struct eng_qp *qp);

#endif
