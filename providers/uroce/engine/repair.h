/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Repair: after a NAK for a PSN only what is missing is sent again, not all behind it, to a peer
 * that keeps what comes early (early.h).  Its answer then lies beyond the gap: it jumps.  One
 * packet to begin with, since a NAK does not tell how many are missing; twice as many each time
 * that the answer ends right behind them.  When a peer that has never jumped does not jump, all is
 * sent again from there, as the specification has it.
 *
 * The response to a READ always ends right behind it, and that to the next one follows, if it has
 * been kept.  So where it is known how long the peer is silent between two responses, on a network,
 * its end says nothing, and what was not kept is sent again after a NAK or a silence.  Otherwise
 * all behind a lost READ request would be asked for twice, and so the next ones be answered late.
 *
 * Which peers keep packets is learned.  To ask costs a round trip, so only those that tell of
 * credits are asked, and no more than a few times unless they jump; before that they are told of
 * our credits (rule C8), by which a uroce knows which peers may be told beyond a gap.
 *
 * On a network an ACK solicitation follows a repair, as its sentinel: a packet of the past, which
 * is answered in any case.  When the sentinel is answered, and by nothing new, the repair did not
 * arrive before it and is sent again at once.  And when the answer to the repair is lost, that to
 * the sentinel says the same.  Both would otherwise be found by a silence, in which nothing is
 * sent.  In a silence a sentinel goes alone, ahead of any probe (tlp.h): it tells what a lost NAK
 * would have told, and whether a READ has arrived.  That one goes also to a peer that tells of
 * credits and has not jumped yet: the first loss may be the end of a window, for which there is no
 * NAK.  A network that reorders makes a repair come twice so.
 *
 * The repair of a READ has no sentinel, because that may be answered before the READ is.  Nor has
 * any while duplicates may be under way: their answers look like the sentinel's.
 *
 * The window has been cut to half, and all of it is under way until the answer to the repair is
 * back.  When that is released, the line has idled for as long as the path without its queue takes.
 * So there, half a round trip after the NAK, when half of what was under way has left the network,
 * one new packet may follow.  (In the simulator, 200 Mb/s and a round trip of 0.1 ms without a
 * queue, WRITEs and SENDs get 0.980 of the line with a loss of 1 % and not 0.978, with 5 % 0.93 and
 * not 0.91.  A packet at once brings the same, and makes flows through a short queue unequal.)
 *
 * A repair that is lost with its sentinel, or twice, is sent again by the tail-loss probe (tlp.h).
 */
#ifndef UROCE_ENGINE_REPAIR_H
#define UROCE_ENGINE_REPAIR_H

#include "qp.h"

struct eng_burst;

/*
 * The peer has answered the first request.  On a network, where packets will be lost, it is told of
 * our credits at once if it tells of its own, so that the first loss is repaired.  To send all
 * again then would be a window at once, into a queue that has just been full.
 */
void repair_introduce(struct eng_qp *qp);

/* A NAK: unacked_psn is missing.  True if it is repaired; otherwise all has to be sent again. */
bool repair_begin(struct eng_qp *qp, uint64_t now);

/*
 * Nothing has been heard for some time: the repair that waits once more, or the oldest packet, or
 * twice as many as last time if just these have been acknowledged since.  False as above.
 */
bool repair_probe(struct eng_qp *qp, uint64_t now);

/* Has a repair been sent, or is it to be, of which something is still missing? */
bool repair_is_unanswered(const struct eng_qp *qp);

/*
 * No answer to a duplicate or to a solicitation may be under way: it would look like the answer to
 * a sentinel, or like an unsolicited ACK.
 */
bool repair_duplicates_are_answered(const struct requester *req);

/* May a sentinel be sent in a silence: would its answer be known as such, and tell? */
bool repair_may_have_sentinel(const struct eng_qp *qp);

/* An ACK of what is acknowledged already has come: was it the answer to a sentinel? */
void repair_sentinel_answered(struct eng_qp *qp, const struct wire_packet *answer, uint64_t now);

/* When a new packet may follow the repair that waits, or ENG_NEVER. */
static inline uint64_t repair_deadline(const struct eng_qp *qp)
{
	return qp->req.repair.follower_at ? qp->req.repair.follower_at : ENG_NEVER;
}

/* That time has come. */
static inline void repair_let_follow(struct eng_qp *qp)
{
	qp->req.repair.follower_at = 0;
	qp->req.repair.follower = true;
}

/* It has been answered, or all is sent again. */
static inline void repair_stop(struct eng_qp *qp)
{
	qp->req.repair.owed = false;
	qp->req.repair.waits = false;
	qp->req.repair.follower = false;
	qp->req.repair.follower_at = 0;
}

/* A burst of this kind could not be sent. */
void repair_unsent(struct eng_qp *qp, const struct eng_burst *burst);

/* unacked_psn has moved up while a repair waits. */
void repair_progress(struct eng_qp *qp);

/* An ACK has been taken in, which is not followed by a NAK: has it jumped? */
void repair_acknowledged(struct eng_qp *qp, uint64_t now);

/* So has a response to a READ or Atomic: a repair whose answer has jumped is over. */
void repair_responded(struct eng_qp *qp, uint64_t now);

#endif
