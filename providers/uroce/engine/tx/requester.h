/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Requester: decides which request packet is sent next, and whether it may be sent. */
#ifndef UROCE_ENGINE_TX_REQUESTER_H
#define UROCE_ENGINE_TX_REQUESTER_H

#include "engine/qp_priv.h"
#include "engine/recovery/loss_state.h"

/* Fills burst with request packets from next_psn on. */
enum eng_tx requester_transmit(struct eng_qp *qp, struct eng_burst *burst, uint64_t now);

/*
 * Returns true if the congestion window has room for less than this number of packets (or a part of
 * the window), so that the requester should wait for further ACKs.  Sending after each single ACK
 * would lead to short bursts, each acknowledged by a single ACK again.  To be called only while a
 * packet with AckReq is in flight.
 */
bool requester_waits_for_cwnd(const struct eng_qp *qp, uint32_t packets);

/* Fills burst with the pending action of loss recovery; ENG_TX_IDLE: it is not needed any more. */
enum eng_tx requester_transmit_control(struct eng_qp *qp, struct eng_burst *burst);

/*
 * Returns true if requester_transmit() has nothing to do; false on UC and UD, where sent requests
 * complete in the next call.
 */
static inline bool requester_is_done(const struct eng_qp *qp)
{
	return can_request(qp) && qp->req.next_wqe == qp->sq->head && !loss_acts(qp) &&
	       qp->req.loss.state != LOSS_RNR_WAIT && is_reliable(qp);
}

#endif
