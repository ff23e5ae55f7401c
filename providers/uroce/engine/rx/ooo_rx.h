/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Requests that come before their turn, because one before them was lost.  rule S4 forbids to
 * execute them, but not to remember them: they are kept as they came, without any check, and are
 * judged and executed when their turn comes, as if they had only then been received.  Payload is
 * not placed before that either: an R_Key may be refused, a receive request may be missing, the
 * message may be another one than the sender believes.  What the peer sees is the NAK as ever, and
 * once the gap is filled an ACK that lies beyond it.
 *
 * Only for a peer that has told of credits without having been asked (rules C8, C9), as uroce does:
 * it takes such an ACK for what it says.  Linux's rxe and adapters have never been seen to; rxe
 * tells of no credits at all.
 *
 * Memory is the owner's (eng_ops.ooo_alloc): a block for each packet, bounded for the QP here,
 * for the process by the owner.  Without any all is as the specification has it.
 */
#ifndef UROCE_ENGINE_RX_OOO_RX_H
#define UROCE_ENGINE_RX_OOO_RX_H

#include "engine/base/aeth.h"
#include "engine/qp_priv.h"

/* A request that lies ahead has come: keep it if that is possible. */
void ooo_insert(struct eng_qp *qp, const struct wire_packet *packet);

/* The kept request whose turn it is, or NULL; those whose turn has passed are given back. */
const struct wire_packet *ooo_peek(struct eng_qp *qp);

/* The first of those that are kept is done with. */
void ooo_pop(struct eng_qp *qp);

/* Give all of them back. */
void ooo_flush(struct eng_qp *qp);

/* Asserts that the list is in the order of PSNs, and as long as it says. */
void ooo_check(const struct ooo_queue *ooo);

/* The peer has told of credits without a request of ours: it is one that understands. */
static inline void ooo_peer_reported_credits(struct eng_qp *qp, uint8_t credit_code)
{
	if (credit_code != CREDIT_CODE_UNLIMITED)
		qp->resp.ooo.peer_supports = true;
}

#endif
