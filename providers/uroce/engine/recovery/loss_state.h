/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Loss recovery of a requester as one state machine (RFC 9002 has the terms):
 *
 *   OPEN      no packet is known to be lost
 *   RECOVERY  missing packets have been retransmitted, and packets sent before that are unacked
 *   GO_BACK   all packets from unacked_psn on are sent again because of a NAK; further NAKs for
 *             unacked_psn, caused by packets in flight, are ignored
 *   PROBE     the peer is silent: the oldest packet has been sent again, and no other may follow
 *   RNR_WAIT  the peer's RNR timer runs (rule S10)
 *
 * Progress leads to OPEN, except from RECOVERY, which ends when all packets sent before it are
 * acknowledged, and from RNR_WAIT, which ends when the timer of the NAK expires, and returns to
 * GO_BACK if it began there.
 *
 * Three actions are sent before new packets: an ACK probe (ack_req.h), a retransmission
 * (retransmit.h), and requests for missing parts of READs (read_retry.h).
 */
#ifndef UROCE_ENGINE_RECOVERY_LOSS_STATE_H
#define UROCE_ENGINE_RECOVERY_LOSS_STATE_H

#include "engine/base/aeth.h"
#include "engine/qp_priv.h"

const char *loss_state_name(enum loss_state state);

/* Changes the state; asserts that the transition is in the table of loss_state.c. */
void loss_enter(struct eng_qp *qp, enum loss_state to);

/* Changes the state; all packets from unacked_psn on are sent again, and no action is pending. */
void loss_go_back(struct eng_qp *qp, enum loss_state to);

/*
 * Makes action pending and restarts the probe timer.  An ACK probe does not replace another action,
 * which has AckReq itself.
 */
void loss_act(struct eng_qp *qp, enum loss_action action, uint64_t now);

/* A burst of this action could not be sent: makes it pending again, if it is still needed. */
void loss_rollback(struct eng_qp *qp, enum loss_action action);

/* The peer has reported a loss: for some time silence of the peer counts as a further loss. */
void loss_reported(struct eng_qp *qp, uint64_t now);

static inline bool loss_acts(const struct eng_qp *qp)
{
	return qp->req.loss.action != LOSS_ACTION_NONE;
}

/*
 * Returns true if probes can be sent: the Local ACK Timeout is long enough, as every timeout that
 * the device uses is (aeth.h), and there are retries.
 */
static inline bool loss_has_probes(const struct eng_qp *qp)
{
	return qp->attr.timeout_code >= ACK_DELAY_CODE && qp->attr.retry_count > 0;
}

#endif
