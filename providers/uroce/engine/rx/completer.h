/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Completer: handles responses, which acknowledge, complete, fail or repeat requests.  In the
 * specification it is a part of the requester; the term completer is that of Linux's rxe.
 */
#ifndef UROCE_ENGINE_RX_COMPLETER_H
#define UROCE_ENGINE_RX_COMPLETER_H

#include "engine/qp_priv.h"

/*
 * Handles a response packet: ACK, NAK, READ or Atomic response.  Returns ENG_SUCCESS or the error
 * that the QP fails with.
 */
enum eng_status completer_receive(struct eng_qp *qp, const struct wire_packet *packet,
				  uint64_t now);

/* UC and UD: completes the requests that have been sent. */
void completer_sent(struct eng_qp *qp, uint64_t now);

/*
 * Fast path for an ACK on RC of the oldest request, of one packet, while nothing is retransmitted.
 * Returns false without any effect in all other cases; the caller must then call
 * completer_receive().
 */
bool completer_receive_fast(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now);

#endif
