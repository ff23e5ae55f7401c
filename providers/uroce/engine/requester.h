/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The sending side's policy: which request packet goes next, and whether it may.
 */
#ifndef UROCE_ENGINE_REQUESTER_H
#define UROCE_ENGINE_REQUESTER_H

#include "qp.h"

/* The QP has been given its sq_psn: start from there. */
void requester_start(struct eng_qp *qp, uint32_t sq_psn);

/* Number the entry just posted and move head on (rules S2, C11). */
void requester_push(struct eng_qp *qp);

/* Fill run with request packets from next_psn on. */
enum eng_tx requester_transmit(struct eng_qp *qp, struct eng_run *run, uint64_t now);

/*
 * Has a window that was full not yet opened by so many packets (or half of itself)?  Sending what
 * each single ACK allows would make short runs, each of which brings an ACK for as little, for
 * ever.  Only while an ACK is on its way that will open it further.
 */
bool requester_awaits_room(const struct eng_qp *qp, uint32_t packets);

/* Send again from unacked_psn on: a whole retry. */
void requester_go_back(struct eng_qp *qp);
/* Send again from psn on, which lies between unacked_psn and next_psn. */
void requester_rewind(struct eng_qp *qp, uint32_t psn);

/* Would requester_transmit() do nothing?  (On unreliable services it completes what was sent.) */
static inline bool requester_is_done(const struct eng_qp *qp)
{
	return can_request(qp) && qp->req.next_wqe == qp->sq->head && !qp->req.solicit_owed &&
	       qp->req.rnr_until == 0 && is_reliable(qp);
}

/* PSNs handed out and not acknowledged. */
static inline uint32_t requester_in_flight(const struct eng_qp *qp)
{
	return psn_sub(qp->req.end_psn, qp->req.unacked_psn);
}

#endif
