/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "engine/recovery/repair.h"

#include <assert.h>

#include "engine/credit.h"
#include "engine/cwnd.h"
#include "engine/law.h"
#include "engine/op.h"
#include "engine/recovery/gaps.h"
#include "engine/recovery/rtt.h"
#include "engine/sendqueue.h"

enum {
	/*
	 * Unless the peer has been shown our credits, the first loss is used for that; then a peer
	 * that has not jumped is asked so often.
	 */
	TRIALS = 4,
};

/* The peer learns that we are one for which it may keep packets. */
static void show_credits(struct eng_qp *qp)
{
	if (qp->reports_credits && can_respond(qp) && qp->resp.repeats == 0)
		qp->resp.repeats = 1;
}

static bool may_be_shown(const struct eng_qp *qp)
{
	return qp->type == ENG_RC && credit_is_told(qp) && loss_has_probes(qp);
}

void repair_introduce(struct eng_qp *qp)
{
	qp->req.repair.peer = PEER_ANSWERED;
	if (!may_be_shown(qp))
		return;
	show_credits(qp);
	qp->req.repair.trials++;
}

/* Does the peer keep what comes early, or may that be tried? */
static bool peer_may_keep(struct eng_qp *qp)
{
	struct repair *repair = &qp->req.repair;

	if (repair->peer == PEER_KEEPS)
		return true;
	if (!may_be_shown(qp) || repair->trials > TRIALS)
		return false;
	show_credits(qp);
	return repair->trials++ > 0;
}

/* Returns false where all packets are about to be sent again, in their turn. */
static bool is_possible(const struct eng_qp *qp)
{
	return sendqueue_awaits_answer(qp) && qp->req.loss.state != LOSS_RNR_WAIT;
}

static uint32_t repair_end(const struct repair *repair)
{
	return psn_add(repair->psn, repair->packets);
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
	return psn_diff(repair_end(&qp->req.repair), qp->req.unacked_psn);
}

/*
 * When something has been acknowledged that was sent behind all duplicates, these have been
 * answered; but not the last solicitation when just the ACKs have come that had been asked for
 * before it (solicit.c).
 */
bool repair_duplicates_are_answered(const struct requester *req)
{
	return psn_diff(req->unacked_psn, req->repeated_psn) > 0 &&
	       req->unacked_psn != req->solicited_psn;
}

bool repair_knows_path(const struct eng_qp *qp)
{
	/* Not to adapters and rxe, unless they report credits, which a uroce does. */
	return law_is_of_networks(qp) && qp->type == ENG_RC && credit_is_told(qp) &&
	       rtt_is_known(&qp->req.rtt);
}

bool repair_is_told_by_ack(const struct eng_qp *qp)
{
	uint8_t op = sq_at(qp, qp->sq->tail)->op;

	if (!repair_duplicates_are_answered(&qp->req))
		return false;
	return op == ENG_READ ? !gaps_exist(qp) : !op_is_read_or_atomic(op);
}

static void send_again(struct eng_qp *qp, uint32_t packets, uint64_t now)
{
	struct repair *repair = &qp->req.repair;

	assert(is_possible(qp) && packets > 0);
	repair->psn = qp->req.unacked_psn;
	repair->packets = packets;
	repair->sent_psn = qp->req.next_psn;
	qp->req.repeated_psn = qp->req.end_psn;
	loss_enter(qp, LOSS_RECOVERY);
	loss_act(qp, LOSS_ACTION_REPAIR, now);
	count(qp, ENG_COUNT_REPAIRS);
}

bool repair_begin(struct eng_qp *qp, uint64_t now)
{
	struct requester *req = &qp->req;
	struct repair *repair = &req->repair;
	bool again = req->loss.state == LOSS_RECOVERY;
	uint32_t packets = 1;

	/*
	 * The NAK has been doubled on its way, or answers what was sent before the repair.  Or what
	 * was sent behind the repair has overtaken it and been dropped: a probe finds that out.
	 */
	if (again && repair->packets > 0 && repair->psn == req->unacked_psn)
		return true;
	if (!is_possible(qp) || req->loss.state == LOSS_GO_BACK || req->retries_left == 0 ||
	    !peer_may_keep(qp))
		return false;
	if (again && repair_end(repair) == req->unacked_psn) {
		/* Nothing behind it was kept, or nothing behind it had come. */
		if (repair->peer != PEER_KEEPS)
			return false;
		packets = twice(repair->packets);
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
static bool tells_of_loss(const struct eng_qp *qp, const struct wire_packet *answer)
{
	const struct requester *req = &qp->req;
	const struct eng_send_wqe *oldest = sq_at(qp, qp->sq->tail);

	if (oldest->op == ENG_READ)
		return psn_diff(answer->msn, oldest->ssn) < 0 ||
		       req->unacked_psn != oldest->first_psn;
	return answer->psn == psn_sub(req->unacked_psn, 1);
}

void repair_solicited(struct eng_qp *qp, const struct wire_packet *answer, uint64_t now)
{
	struct requester *req = &qp->req;

	if (req->loss.action == LOSS_ACTION_REPAIR || !repair_knows_path(qp) || !is_possible(qp) ||
	    !tells_of_loss(qp, answer))
		return;
	/* The oldest packet, or all of them, have just been sent again. */
	if (req->loss.state != LOSS_OPEN && req->loss.state != LOSS_RECOVERY)
		return;
	/* That one has been answered. */
	req->loss.solicited_at = 0;
	cwnd_first_loss(qp);
	loss_reported(qp, now);
	send_again(qp, packets_left(qp) > 0 ? (uint32_t)packets_left(qp) : 1, now);
}

bool repair_probe(struct eng_qp *qp, uint64_t now)
{
	struct repair *repair = &qp->req.repair;
	int32_t left = packets_left(qp);
	uint32_t packets = 1;

	if (repair->peer != PEER_KEEPS && left <= 0)
		return false;
	if (left > 0)
		packets = (uint32_t)left;
	/* Nothing behind what was sent again last has been acknowledged. */
	else if (repair->packets > 0 && repair_end(repair) == qp->req.unacked_psn)
		packets = twice(repair->packets);
	send_again(qp, packets, now);
	return true;
}

void repair_stop(struct eng_qp *qp)
{
	if (qp->req.loss.action == LOSS_ACTION_REPAIR)
		qp->req.loss.action = LOSS_ACTION_NONE;
	loss_enter(qp, LOSS_OPEN);
}

void repair_progress(struct eng_qp *qp)
{
	struct repair *repair = &qp->req.repair;
	int32_t beyond = psn_diff(qp->req.unacked_psn, repair_end(repair));

	assert(qp->req.loss.state == LOSS_RECOVERY);
	if (beyond < 0)
		return;
	/* What has come before the repair has left was overtaken, or is answered late. */
	if (qp->req.loss.action == LOSS_ACTION_REPAIR) {
		repair_stop(qp);
		return;
	}
	if (beyond == 0)
		return;
	count(qp, ENG_COUNT_JUMPS);
	repair->peer = PEER_KEEPS;
	repair->psn = qp->req.unacked_psn;
	repair->packets = 0;
}

/* All that was sent before the repair has been answered. */
static bool is_over(const struct eng_qp *qp)
{
	return sendqueue_in_flight(qp) == 0 ||
	       psn_diff(qp->req.unacked_psn, qp->req.repair.sent_psn) >= 0;
}

void repair_acknowledged(struct eng_qp *qp, uint64_t now)
{
	struct repair *repair = &qp->req.repair;
	uint32_t left = psn_sub(repair->sent_psn, qp->req.unacked_psn);

	if (qp->req.loss.state != LOSS_RECOVERY || qp->req.unacked_psn != repair_end(repair))
		return;
	if (is_over(qp)) {
		repair_stop(qp);
		return;
	}
	/* If it is there, its response is on its way behind this ACK. */
	if (op_is_read_or_atomic(sq_at(qp, qp->sq->tail)->op))
		return;
	if (repair->peer != PEER_KEEPS) {
		loss_go_back(qp, LOSS_OPEN);
		return;
	}
	if (!is_possible(qp))
		return;
	/* It was sent before the repair and is not there: lost, or the peer had no more room. */
	send_again(qp, left < twice(repair->packets) ? left : twice(repair->packets), now);
}

void repair_responded(struct eng_qp *qp)
{
	if (qp->req.loss.state == LOSS_RECOVERY && (qp->req.repair.packets == 0 || is_over(qp)))
		repair_stop(qp);
}
