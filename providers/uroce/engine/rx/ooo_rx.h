/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Requests received out of order, after a lost one.  rule S4 forbids to execute them, but not to
 * keep them: they are stored unchecked, and are checked and executed when their turn comes, as if
 * they were received then.  Payload is not placed before that either: the R_Key may be invalid, a
 * receive WQE may be missing, or the request may not continue the message before it.  The peer gets
 * a NAK as usual, and once the missing packet has arrived an ACK for everything kept.
 *
 * Only for a peer that has sent an unsolicited ACK with credits (rules C8, C9), as uroce does: such
 * a peer handles an ACK beyond the NAK.  It is not known that rxe and adapters handle such an ACK;
 * rxe reports no credits at all.
 *
 * The owner provides a block of memory for each packet (eng_ops.ooo_alloc) and limits them for the
 * process; ENG_AHEAD_PACKETS limits them for the QP.  Without memory out-of-order packets are
 * dropped, as the specification describes.
 */
#ifndef UROCE_ENGINE_RX_OOO_RX_H
#define UROCE_ENGINE_RX_OOO_RX_H

#include "engine/base/aeth.h"
#include "engine/qp_priv.h"

/* Keeps an out-of-order request if possible. */
void ooo_insert(struct eng_qp *qp, const struct wire_packet *packet);

/* Returns the kept request at expected_psn, or NULL; frees kept requests before it. */
const struct wire_packet *ooo_peek(struct eng_qp *qp);

/* Frees the first kept request. */
void ooo_pop(struct eng_qp *qp);

/* Frees all kept requests. */
void ooo_flush(struct eng_qp *qp);

/* Asserts that the list is in PSN order and has count entries. */
void ooo_check(const struct ooo_queue *ooo);

/* To be called for an unsolicited ACK: a peer that sends these is taken to handle ACKs past a NAK.
 */
static inline void ooo_peer_reported_credits(struct eng_qp *qp, uint8_t credit_code)
{
	if (credit_code != CREDIT_CODE_UNLIMITED)
		qp->resp.ooo.peer_supports = true;
}

#endif
