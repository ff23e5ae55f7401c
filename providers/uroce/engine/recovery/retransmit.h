/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Repair: after a NAK for a PSN only what is missing is sent again, not all behind it, to a peer
 * that keeps what comes early (ooo_rx.h).  Its answer then lies beyond the gap: it jumps.  One
 * packet to begin with, since a NAK does not tell how many are missing; twice as many each time
 * that the answer ends right behind them.  When a peer that has never jumped does not jump, all is
 * sent again from there, as the specification has it.
 *
 * Which peers keep packets is learned.  To ask costs a round trip, so only those that report
 * credits are asked, and no more than a few times unless they jump; before that they are shown our
 * credits (rule C8), by which a uroce knows for which peers it may keep packets.
 *
 * On a network the answer to an ACK solicitation, which is a packet of the past, tells as much as a
 * NAK: when it acknowledges nothing new, what was sent before it has not arrived.  So the loss of a
 * NAK, of a repair or of the end of a window is found out by one, and in a network that reorders
 * packets a repair may then come twice.  Its answer cannot be told from those to duplicates that
 * are under way; then only the probes repeat anything.
 */
#ifndef UROCE_ENGINE_RECOVERY_RETRANSMIT_H
#define UROCE_ENGINE_RECOVERY_RETRANSMIT_H

#include "loss_state.h"

/*
 * The peer has answered the first request.  On a network, where packets will be lost, it is shown
 * our credits at once if it reports its own, so that the first loss is repaired.  To send all
 * again then would be a window at once, into a queue that has just been full.
 */
void retransmit_announce(struct eng_qp *qp);

/* A NAK: unacked_psn is missing.  True if it is repaired; otherwise all has to be sent again. */
bool retransmit_on_nak(struct eng_qp *qp, uint64_t now);

/*
 * A probe: sends the unanswered repair once more, or the oldest packet, or twice as many as last
 * time if just these have been acknowledged since.  False as above.
 */
bool retransmit_on_timeout(struct eng_qp *qp, uint64_t now);

/*
 * No answer to a duplicate or to a solicitation may be under way: it would look like the answer to
 * a later solicitation, or like an unsolicited ACK.
 */
bool retransmit_duplicates_are_acked(const struct requester *req);

/* Returns true on a network, to a peer that reports credits, once a round trip is known. */
bool retransmit_path_is_known(const struct eng_qp *qp);

/* Would the answer to a solicitation be known as such, and tell of a loss? */
bool retransmit_ack_shows_loss(const struct eng_qp *qp);

/* An ACK of what is acknowledged already has come: it may be the answer to a solicitation. */
void retransmit_on_ack_probe(struct eng_qp *qp, const struct wire_packet *answer, uint64_t now);

/* What was to be repaired has been acknowledged: back to OPEN. */
void retransmit_stop(struct eng_qp *qp);

/* unacked_psn has moved up in RECOVERY. */
void retransmit_progress(struct eng_qp *qp);

/* An ACK has been taken in, which is not followed by a NAK: has it jumped? */
void retransmit_acknowledged(struct eng_qp *qp, uint64_t now);

/* So has a response to a READ or Atomic: a repair whose answer has jumped is over. */
void retransmit_responded(struct eng_qp *qp);

#endif
