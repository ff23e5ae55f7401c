/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Loss recovery of a requester as one state machine (RFC 9002 has the terms):
 *
 *   OPEN      nothing that was sent is known to be lost
 *   RECOVERY  what is missing has been sent again, and what was sent before that is unanswered
 *   GO_BACK   a NAK had all packets from unacked_psn on sent again; NAKs of the first try, which
 *             may still be under way, are ignored
 *   PROBE     the peer is silent: the oldest packet has been sent again, and no other may follow
 *   RNR_WAIT  the peer's RNR timer runs (rule S10)
 *
 * Any progress leads back to OPEN, but from RECOVERY, which ends when all that had been sent before
 * it is answered, and from RNR_WAIT, which lasts as long as the NAK has named; that leads back to
 * GO_BACK where it began there.
 *
 * Three actions go ahead of new packets: an ACK solicitation (ack_req.h), a repair (retransmit.h),
 * and requests for missing parts of READs (read_retry.h).
 */
#ifndef UROCE_ENGINE_RECOVERY_LOSS_STATE_H
#define UROCE_ENGINE_RECOVERY_LOSS_STATE_H

#include "engine/base/aeth.h"
#include "engine/qp_priv.h"

const char *loss_state_name(enum loss_state state);

/* Asserts that the transition is one of those above. */
void loss_enter(struct eng_qp *qp, enum loss_state to);

/* All packets from unacked_psn on are sent again, in their turn, and no action is pending. */
void loss_go_back(struct eng_qp *qp, enum loss_state to);

/*
 * action is to be sent as soon as possible.  The probe timer restarts.  A solicitation does not
 * replace another action: that one asks for an ACK itself.
 */
void loss_act(struct eng_qp *qp, enum loss_action action, uint64_t now);

/* A burst of this action could not be sent. */
void loss_rollback(struct eng_qp *qp, enum loss_action action);

/* The peer has reported a loss: for some time its silence is taken for another one. */
void loss_reported(struct eng_qp *qp, uint64_t now);

static inline bool loss_acts(const struct eng_qp *qp)
{
	return qp->req.loss.action != LOSS_ACTION_NONE;
}

/*
 * Returns true if the Local ACK Timeout is long enough for probes ahead of it, as all are that the
 * device uses (aeth.h), and packets may be sent again at all.
 */
static inline bool loss_has_probes(const struct eng_qp *qp)
{
	return qp->attr.timeout_code >= ACK_DELAY_CODE && qp->attr.retry_count > 0;
}

#endif
