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
	/*
	 * Unless the peer has been shown our credits, the first loss is used for that; then a peer
	 * that has not jumped is asked so often.
	 */
	TRIALS = 4,
};

/* The peer learns that we are one for which it may keep packets. */
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
	qp->req.retransmit.peer = PEER_ANSWERED;
	if (!may_announce(qp))
		return;
	announce_credits(qp);
	qp->req.retransmit.trials++;
}

/* Does the peer keep what comes early, or may that be tried? */
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

/* Returns false where all packets are about to be sent again, in their turn. */
static bool is_possible(const struct eng_qp *qp)
{
	return sq_awaits_response(qp) && qp->req.loss.state != LOSS_RNR_WAIT;
}

static uint32_t retransmit_end(const struct retransmit *retransmit)
{
	return psn_add(retransmit->psn, retransmit->packets);
}

/* A repair is no longer than a burst and what is in flight. */
static uint32_t twice(uint32_t packets)
{
	return packets == 0 ? 1 : 2 * packets;
}

/* Packets of the repair that are still missing; 0 or less: none. */
static int32_t packets_left(const struct eng_qp *qp)
{
	if (qp->req.loss.state != LOSS_RECOVERY)
		return 0;
	return psn_diff(retransmit_end(&qp->req.retransmit), qp->req.unacked_psn);
}

/*
 * When something has been acknowledged that was sent behind all duplicates, these have been
 * answered; but not the last solicitation when just the ACKs have come that had been asked for
 * before it (ack_req.c).
 */
bool retransmit_duplicates_are_acked(const struct requester *req)
{
	return psn_diff(req->unacked_psn, req->repeated_psn) > 0 &&
	       req->unacked_psn != req->ack_probe_psn;
}

bool retransmit_path_is_known(const struct eng_qp *qp)
{
	/* Not to adapters and rxe, unless they report credits, which a uroce does. */
	return cc_is_network(qp) && qp->type == ENG_RC && credit_is_reported(qp) &&
	       rtt_is_known(&qp->req.rtt);
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
	count(qp, ENG_COUNT_REPAIRS);
}

bool retransmit_on_nak(struct eng_qp *qp, uint64_t now)
{
	struct requester *req = &qp->req;
	struct retransmit *retransmit = &req->retransmit;
	bool again = req->loss.state == LOSS_RECOVERY;
	uint32_t packets = 1;

	/*
	 * The NAK has been doubled on its way, or answers what was sent before the repair.  Or what
	 * was sent behind the repair has overtaken it and been dropped: a probe finds that out.
	 */
	if (again && retransmit->packets > 0 && retransmit->psn == req->unacked_psn)
		return true;
	if (!is_possible(qp) || req->loss.state == LOSS_GO_BACK || req->retries_left == 0 ||
	    !peer_may_keep_ooo(qp))
		return false;
	if (again && retransmit_end(retransmit) == req->unacked_psn) {
		/* Nothing behind it was kept, or nothing behind it had come. */
		if (retransmit->peer != PEER_KEEPS)
			return false;
		packets = twice(retransmit->packets);
	}
	/* rule S10: it is a retry, and what it repairs is progress. */
	req->retries_left--;
	req->last_progress = now;
	count(qp, ENG_COUNT_COMPLETER_RETRY);
	cwnd_first_loss(qp);
	loss_reported(qp, now);
	send_again(qp, packets, now);
	return true;
}

/*
 * A READ is missing if the peer has not executed it, as the MSN tells (rule C11), and so is the end
 * of a response that has begun, since no ACK is sent amid one.  Else it may be on its way.
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
	/* The oldest packet, or all of them, have just been sent again. */
	if (req->loss.state != LOSS_OPEN && req->loss.state != LOSS_RECOVERY)
		return;
	/* That one has been answered. */
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
	/* Nothing behind what was sent again last has been acknowledged. */
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
	/* What has come before the repair has left was overtaken, or is answered late. */
	if (qp->req.loss.action == LOSS_ACTION_RETRANSMIT) {
		retransmit_stop(qp);
		return;
	}
	if (beyond == 0)
		return;
	count(qp, ENG_COUNT_JUMPS);
	retransmit->peer = PEER_KEEPS;
	retransmit->psn = qp->req.unacked_psn;
	retransmit->packets = 0;
}

/* All that was sent before the repair has been answered. */
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
	/* If it is there, its response is on its way behind this ACK. */
	if (op_is_read_or_atomic(sq_at(qp, qp->sq->tail)->op))
		return;
	if (retransmit->peer != PEER_KEEPS) {
		loss_go_back(qp, LOSS_OPEN);
		return;
	}
	if (!is_possible(qp))
		return;
	/* It was sent before the repair and is not there: lost, or the peer had no more room. */
	send_again(qp, left < twice(retransmit->packets) ? left : twice(retransmit->packets), now);
}

void retransmit_responded(struct eng_qp *qp)
{
	if (qp->req.loss.state == LOSS_RECOVERY && (qp->req.retransmit.packets == 0 || is_over(qp)))
		retransmit_stop(qp);
}
