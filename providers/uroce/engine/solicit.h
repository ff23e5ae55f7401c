/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * When a requester asks for an ACK (AckReq).  Each costs a packet and a system call on either side,
 * and a sender whose requests carry no signal waits for none of them.  So ACKs are asked for where
 * somebody waits for them, and else just often enough that the window, the send queue and the
 * credits never run out without an ACK on its way: one at a time, which says how far the peer has
 * got by then (rule S7).
 *
 * What nobody has asked for is asked for when nothing has moved for a while.  Any packet from the
 * past will do, since a duplicate is not executed but acknowledged, with all that has come since
 * (rule S4): so the question is a SEND of no bytes with the PSN before unacked_psn.  To send a
 * packet of our own again would mean to read memory that its owner, who has had the peer's answer
 * by other means, may have taken away.  A question is no retry: rule S10 knows nothing of it.
 */
#ifndef UROCE_ENGINE_SOLICIT_H
#define UROCE_ENGINE_SOLICIT_H

#include "qp.h"

/*
 * Does this packet of wqe, of this weight, the next to be sent and to be added to run, ask for an
 * ACK?
 */
bool solicit_sets_ackreq(const struct eng_qp *qp, const struct eng_run *run,
			 const struct eng_send_wqe *wqe, const struct wire_packet *packet,
			 uint64_t cost, uint64_t now);

/* When to ask for what has been sent without, or ENG_NEVER. */
uint64_t solicit_deadline(const struct eng_qp *qp);
/* Its time has come: a question is owed ... */
void solicit_begin(struct eng_qp *qp);
/* ... and put into run, which is empty. */
void solicit_transmit(struct eng_qp *qp, struct eng_run *run);
/* unacked_psn has moved, or all is sent again: there is nothing to be asked, or it asks itself. */
void solicit_stop(struct eng_qp *qp);

#endif
