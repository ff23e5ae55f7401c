/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Selective retransmission: after a NAK only the missing packets are sent again to a peer that
 * keeps out-of-order requests (ooo_rx.h).  Its next ACK is then beyond the hole.  The first
 * retransmission is one packet, since a NAK does not contain their number; each time that the
 * ACK ends right after the retransmitted packets, twice as many are sent.  If the first ACK of a
 * peer does not go beyond them, everything after them is sent again, as the specification
 * describes.
 *
 * Whether a peer keeps packets is learned at run time.  Trying costs a round trip, so only peers
 * that report credits are tried, and only a few times unless one succeeds.  Before that they get an
 * unsolicited ACK with our credits (rule C8), by which a uroce peer knows that it may keep packets.
 *
 * On a network or a lossy path the response to an ACK probe is as useful as a NAK: if it
 * acknowledges nothing new, the packets sent before the probe have not arrived.  So one probe
 * detects the loss of a NAK, of a retransmission or of the last packets of a window.  If the path
 * reorders packets, a packet may be sent twice.  While ACKs of duplicates can still arrive, the
 * response to a probe cannot be recognised, and only the probe timeout causes retransmissions.
 */
#ifndef UROCE_ENGINE_RECOVERY_RETRANSMIT_H
#define UROCE_ENGINE_RECOVERY_RETRANSMIT_H

#include "loss_state.h"

/*
 * To be called when the peer has responded for the first time.  On a network, where packets will be
 * lost, reports our credits at once to a peer that reports its own, so that the first loss can be
 * repaired.  Going back instead would send a whole window into a queue that has just been full.
 */
void retransmit_announce(struct eng_qp *qp);

/* Handles a NAK for unacked_psn.  Returns false if all packets must be sent again (go back). */
bool retransmit_on_nak(struct eng_qp *qp, uint64_t now);

/*
 * Handles the probe timeout: repeats the retransmission that has not been acknowledged, or sends
 * the oldest packet, or twice as many packets as before if exactly those have been acknowledged.
 * Returns false if this is not possible.
 */
bool retransmit_on_timeout(struct eng_qp *qp, uint64_t now);

/*
 * Returns true if no ACK of a duplicate or of an ACK probe can still arrive.  Such an ACK could be
 * mistaken for the response to a later ACK probe, or for an unsolicited ACK.
 */
bool retransmit_duplicates_are_acked(const struct requester *req);

/*
 * Returns true on a lossy path, and on a network to a peer that reports credits, once a round trip
 * is known.
 */
bool retransmit_path_is_known(const struct eng_qp *qp);

/* Returns true if the response to an ACK probe would be recognised, and show a loss. */
bool retransmit_ack_shows_loss(const struct eng_qp *qp);

/* Handles an ACK of an acknowledged PSN, which may be the response to an ACK probe. */
void retransmit_on_ack_probe(struct eng_qp *qp, const struct wire_packet *answer, uint64_t now);

/* Ends RECOVERY: everything that was missing has been acknowledged. */
void retransmit_stop(struct eng_qp *qp);

/* To be called when unacked_psn has increased in RECOVERY. */
void retransmit_progress(struct eng_qp *qp);

/*
 * To be called after an ACK: if it ends right after the retransmitted packets, retransmits those
 * after them, or goes back.
 */
void retransmit_acknowledged(struct eng_qp *qp, uint64_t now);

/* To be called after a READ or Atomic response, which can end RECOVERY as well. */
void retransmit_responded(struct eng_qp *qp);

#endif
