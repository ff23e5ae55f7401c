/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What responses do to the send queue: acknowledge, complete, send again, fail.  The specification
 * counts this to the requester; the word completer is rxe's.
 */
#ifndef UROCE_ENGINE_RX_COMPLETER_H
#define UROCE_ENGINE_RX_COMPLETER_H

#include "engine/qp_priv.h"

/* A response packet: ACK, NAK, READ or Atomic response.  Returns a verdict (state.h). */
enum eng_status completer_receive(struct eng_qp *qp, const struct wire_packet *packet,
				  uint64_t now);

/* UC and UD: what was handed out has been sent, which completes it. */
void completer_sent(struct eng_qp *qp, uint64_t now);

/*
 * An ACK on RC: is it that of the oldest request, which has one packet, and is nothing being sent
 * again?  Then it has been taken; otherwise nothing has been done, and completer_receive() is to be
 * called.
 */
bool completer_receive_fast(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now);

#endif
