/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "retransmit.h"

#include <assert.h>

#include "engine/base/op.h"
#include "engine/cc/cc.h"
#include "engine/cc/cwnd.h"
#include "engine/credit.h"
#include "engine/tx/sq.h"
#include "read_retry.h"
#include "rtt.h"

enum {
	/* Number of retransmissions to a peer that has not yet been seen to keep packets. */
	TRIALS = 4,
};

/* Makes an unsolicited ACK pending, which shows the peer that it may keep packets. */
static void announce_credits(struct eng_qp *qp)
{
	if (qp->reports_credits && can_respond(qp) && qp->resp.repeats == 0)
		qp->resp.repeats = 1;
}

static bool may_announce(const struct eng_qp *qp)
{
	return qp->type == ENG_RC && credit_is_reported(qp) && loss_has_probes(qp);
}

void retransmit_announce(struct eng_qp *qp)
{
	qp->req.retransmit.peer = PEER_RESPONDED;
	if (!may_announce(qp))
		return;
	announce_credits(qp);
	qp->req.retransmit.trials++;
}

/*
 * Returns true if the peer keeps out-of-order packets, or if that may be tried: at most TRIALS
 * times, and only after a first unsolicited ACK to it, which this function makes pending.
 */
static bool peer_may_keep_ooo(struct eng_qp *qp)
{
	struct retransmit *retransmit = &qp->req.retransmit;

	if (retransmit->peer == PEER_KEEPS)
		return true;
	if (!may_announce(qp) || retransmit->trials > TRIALS)
		return false;
	announce_credits(qp);
	return retransmit->trials++ > 0;
}

/*
 * Returns false if nothing is in flight to be retransmitted: all packets are about to be sent again
 * anyway.
 */
static bool is_possible(const struct eng_qp *qp)
{
	return sq_awaits_response(qp) && qp->req.loss.state != LOSS_RNR_WAIT;
}

static uint32_t retransmit_end(const struct retransmit *retransmit)
{
	return psn_add(retransmit->psn, retransmit->packets);
}

/*
 * Returns the number of packets of the next retransmission; the burst and the packets in flight
 * limit it further.
 */
static uint32_t twice(uint32_t packets)
{
	return packets == 0 ? 1 : 2 * packets;
}

/* Number of retransmitted packets not acknowledged yet; 0 or negative: none. */
static int32_t packets_left(const struct eng_qp *qp)
{
	if (qp->req.loss.state != LOSS_RECOVERY)
		return 0;
	return psn_diff(retransmit_end(&qp->req.retransmit), qp->req.unacked_psn);
}

/*
 * An ACK of a packet sent after all duplicates shows that these have been acknowledged.  It does
 * not show that for an ACK probe if it was requested by a packet sent before the probe (ack_req.c).
 */
bool retransmit_duplicates_are_acked(const struct requester *req)
{
	return psn_diff(req->unacked_psn, req->repeated_psn) > 0 &&
	       req->unacked_psn != req->ack_probe_psn;
}

bool retransmit_path_is_known(const struct eng_qp *qp)
{
	if (!rtt_is_known(&qp->req.rtt))
		return false;
	/* On a network only peers that report credits, as uroce does; not rxe and most adapters. */
	return qp->path_loss == ENG_PATH_LOSSY ||
	       (cc_is_network(qp) && qp->type == ENG_RC && credit_is_reported(qp));
}

bool retransmit_ack_shows_loss(const struct eng_qp *qp)
{
	uint8_t op = sq_at(qp, qp->sq->tail)->op;

	if (!retransmit_duplicates_are_acked(&qp->req))
		return false;
	return op == ENG_READ ? !read_retry_is_active(qp) : !op_is_read_or_atomic(op);
}

static void send_again(struct eng_qp *qp, uint32_t packets, uint64_t now)
{
	struct retransmit *retransmit = &qp->req.retransmit;

	assert(is_possible(qp) && packets > 0);
	retransmit->psn = qp->req.unacked_psn;
	retransmit->packets = packets;
	retransmit->sent_psn = qp->req.next_psn;
	qp->req.repeated_psn = qp->req.end_psn;
	loss_enter(qp, LOSS_RECOVERY);
	loss_act(qp, LOSS_ACTION_RETRANSMIT, now);
	count(qp, ENG_COUNT_FAST_RETRANSMITS);
}

bool retransmit_on_nak(struct eng_qp *qp, uint64_t now)
{
	struct requester *req = &qp->req;
	struct retransmit *retransmit = &req->retransmit;
	bool again = req->loss.state == LOSS_RECOVERY;
	uint32_t packets = 1;

	/*
	 * The NAK is a duplicate, or the response to a packet sent before the retransmission.  Or a
	 * later packet was reordered before the retransmission and dropped; a probe detects that.
	 */
	if (again && retransmit->packets > 0 && retransmit->psn == req->unacked_psn)
		return true;
	if (!is_possible(qp) || req->loss.state == LOSS_GO_BACK || retries_left(qp) == 0 ||
	    !peer_may_keep_ooo(qp))
		return false;
	if (again && retransmit_end(retransmit) == req->unacked_psn) {
		/* The packets after it were not kept, or had not arrived. */
		if (retransmit->peer != PEER_KEEPS)
			return false;
		packets = twice(retransmit->packets);
	}
	/* rule S10: a retransmission is a retry, and restarts the Local ACK Timeout. */
	req->retries.used++;
	req->last_progress = now;
	count(qp, ENG_COUNT_COMPLETER_RETRY);
	cwnd_first_loss(qp);
	loss_reported(qp, now);
	send_again(qp, packets, now);
	return true;
}

/*
 * Returns true if the response to an ACK probe shows that the oldest packet is lost.  A READ
 * request is lost if its number is above the MSN (rule C11).  If a part of a READ's responses has
 * arrived, the rest is lost, since no ACK is sent between them.  Otherwise they may still be in
 * flight.
 */
static bool ack_shows_loss(const struct eng_qp *qp, const struct wire_packet *answer)
{
	const struct requester *req = &qp->req;
	const struct eng_send_wqe *oldest = sq_at(qp, qp->sq->tail);

	if (oldest->op == ENG_READ)
		return psn_diff(answer->msn, oldest->ssn) < 0 ||
		       req->unacked_psn != oldest->first_psn;
	return answer->psn == psn_sub(req->unacked_psn, 1);
}

void retransmit_on_ack_probe(struct eng_qp *qp, const struct wire_packet *answer, uint64_t now)
{
	struct requester *req = &qp->req;

	if (req->loss.action == LOSS_ACTION_RETRANSMIT || !retransmit_path_is_known(qp) ||
	    !is_possible(qp) || !ack_shows_loss(qp, answer))
		return;
	/* In the other states the oldest packet, or all packets, have just been sent again. */
	if (req->loss.state != LOSS_OPEN && req->loss.state != LOSS_RECOVERY)
		return;
	/* The ACK probe has been answered. */
	req->loss.ack_probe_at = 0;
	cwnd_first_loss(qp);
	loss_reported(qp, now);
	send_again(qp, packets_left(qp) > 0 ? (uint32_t)packets_left(qp) : 1, now);
}

bool retransmit_on_timeout(struct eng_qp *qp, uint64_t now)
{
	struct retransmit *retransmit = &qp->req.retransmit;
	int32_t left = packets_left(qp);
	uint32_t packets = 1;

	if (retransmit->peer != PEER_KEEPS && left <= 0)
		return false;
	if (left > 0)
		packets = (uint32_t)left;
	/* The last ACK ended right after the retransmitted packets. */
	else if (retransmit->packets > 0 && retransmit_end(retransmit) == qp->req.unacked_psn)
		packets = twice(retransmit->packets);
	send_again(qp, packets, now);
	return true;
}

void retransmit_stop(struct eng_qp *qp)
{
	if (qp->req.loss.action == LOSS_ACTION_RETRANSMIT)
		qp->req.loss.action = LOSS_ACTION_NONE;
	loss_enter(qp, LOSS_OPEN);
}

void retransmit_progress(struct eng_qp *qp)
{
	struct retransmit *retransmit = &qp->req.retransmit;
	int32_t beyond = psn_diff(qp->req.unacked_psn, retransmit_end(retransmit));

	assert(qp->req.loss.state == LOSS_RECOVERY);
	if (beyond < 0)
		return;
	/*
	 * Acknowledged before the retransmission was sent, or beyond it by a peer that reports no
	 * credits and so keeps no packets: reordered, or the ACK was late.
	 */
	if (qp->req.loss.action == LOSS_ACTION_RETRANSMIT ||
	    (beyond > 0 && !credit_is_reported(qp))) {
		retransmit_stop(qp);
		return;
	}
	if (beyond == 0)
		return;
	count(qp, ENG_COUNT_ACKS_PAST_HOLE);
	retransmit->peer = PEER_KEEPS;
	retransmit->psn = qp->req.unacked_psn;
	retransmit->packets = 0;
}

/* Returns true if all packets sent before the retransmission have been acknowledged. */
static bool is_over(const struct eng_qp *qp)
{
	return sq_in_flight(qp) == 0 ||
	       psn_diff(qp->req.unacked_psn, qp->req.retransmit.sent_psn) >= 0;
}

void retransmit_acknowledged(struct eng_qp *qp, uint64_t now)
{
	struct retransmit *retransmit = &qp->req.retransmit;
	uint32_t left = psn_sub(retransmit->sent_psn, qp->req.unacked_psn);

	if (qp->req.loss.state != LOSS_RECOVERY ||
	    qp->req.unacked_psn != retransmit_end(retransmit))
		return;
	if (is_over(qp)) {
		retransmit_stop(qp);
		return;
	}
	/* The next request is a READ or Atomic: its response may follow this ACK. */
	if (op_is_read_or_atomic(sq_at(qp, qp->sq->tail)->op))
		return;
	if (retransmit->peer != PEER_KEEPS) {
		loss_go_back(qp, LOSS_OPEN);
		return;
	}
	if (!is_possible(qp))
		return;
	/* Packets sent before the retransmission are lost, or the peer had no memory for them. */
	send_again(qp, left < twice(retransmit->packets) ? left : twice(retransmit->packets), now);
}

void retransmit_responded(struct eng_qp *qp)
{
	if (qp->req.loss.state == LOSS_RECOVERY && (qp->req.retransmit.packets == 0 || is_over(qp)))
		retransmit_stop(qp);
}
