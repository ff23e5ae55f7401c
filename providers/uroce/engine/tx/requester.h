/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The sending side's policy: which request packet goes next, and whether it may.
 */
#ifndef UROCE_ENGINE_TX_REQUESTER_H
#define UROCE_ENGINE_TX_REQUESTER_H

#include "engine/qp_priv.h"
#include "engine/recovery/loss_state.h"

/* Fill burst with request packets from next_psn on. */
enum eng_tx requester_transmit(struct eng_qp *qp, struct eng_burst *burst, uint64_t now);

/*
 * Has a window that was full not yet opened by so many packets (or a part of itself)?  Sending what
 * each single ACK allows would make short bursts, each of which brings an ACK for as little, for
 * ever.  Only while an ACK is on its way that will open it further.
 */
bool requester_waits_for_cwnd(const struct eng_qp *qp, uint32_t packets);

/* Fill burst with the pending action of loss recovery; ENG_TX_IDLE if it is needless by now. */
enum eng_tx requester_transmit_control(struct eng_qp *qp, struct eng_burst *burst);

/* Would requester_transmit() do nothing?  (On unreliable services what was sent completes first.)
 */
static inline bool requester_is_done(const struct eng_qp *qp)
{
	return can_request(qp) && qp->req.next_wqe == qp->sq->head && !loss_acts(qp) &&
	       qp->req.loss.state != LOSS_RNR_WAIT && is_reliable(qp);
}

#endif
