/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "repair.h"

#include "burst.h"
#include "credit.h"
#include "cwnd.h"
#include "gaps.h"
#include "interval.h"
#include "law.h"
#include "op.h"
#include "sendqueue.h"
#include "tlp.h"

enum {
	REPAIR_MAX = 64,
	/*
	 * Unless the peer has been told of our credits, the first loss is used for that; then it is
	 * asked so often.
	 */
	TRIALS = 4,
	/*
	 * What comes sooner than such a part of the longest round trip of late, which was one
	 * through a queue, is no answer to a sentinel but was under way.
	 */
	ROUND_TRIP_PARTS = 4,
};

/* The peer learns that we are one that it may tell beyond a gap. */
static void show_credits(struct eng_qp *qp)
{
	if (qp->reports_credits && can_respond(qp) && qp->resp.repeats == 0)
		qp->resp.repeats = 1;
}

void repair_introduce(struct eng_qp *qp)
{
	qp->req.network.unknown = false;
	if (qp->type != ENG_RC || !credit_is_told(qp) || !tlp_has_time(qp))
		return;
	show_credits(qp);
	qp->req.repair.trials++;
}

/* Does the peer keep what comes early, or may that be tried? */
static bool peer_may_keep(struct eng_qp *qp)
{
	struct repair *repair = &qp->req.repair;

	/* What is lost or overtaken of a repair is found by a probe alone. */
	if (!tlp_has_time(qp))
		return false;
	if (repair->confirmed)
		return true;
	if (qp->type != ENG_RC || !credit_is_told(qp) || repair->trials > TRIALS)
		return false;
	show_credits(qp);
	return repair->trials++ > 0;
}

/* What has been gone back over, and not been sent again yet, is sent in its turn. */
static bool is_possible(const struct eng_qp *qp)
{
	return sendqueue_awaits_answer(qp) && qp->req.rnr_until == 0;
}

static uint32_t repair_end(const struct repair *repair)
{
	return psn_add(repair->psn, repair->packets);
}

static uint32_t twice(uint32_t packets)
{
	if (packets == 0)
		return 1;
	return packets < REPAIR_MAX / 2 ? 2 * packets : REPAIR_MAX;
}

/* What of the repair that waits is still missing. */
static uint32_t packets_left(const struct eng_qp *qp)
{
	return psn_sub(repair_end(&qp->req.repair), qp->req.unacked_psn);
}

/* On a network: how long the answers take that come at once. */
static bool knows_round_trip(const struct eng_qp *qp)
{
	return law_is_of_networks(qp) && qp->req.tlp.round_trip_ns > 0;
}

/* Also that the peer keeps what comes early. */
static bool knows_path(const struct eng_qp *qp)
{
	return qp->req.repair.confirmed && knows_round_trip(qp);
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

bool repair_may_have_sentinel(const struct eng_qp *qp)
{
	const struct requester *req = &qp->req;
	uint8_t op = sq_at(qp, qp->sq->tail)->op;

	if (!repair_duplicates_are_answered(req))
		return false;
	if (op == ENG_READ)
		return req->tlp.reads_told && tlp_times_reads(qp) && !gaps_exist(qp);
	/* Not from adapters and rxe, unless they tell of credits, which a uroce does. */
	return qp->type == ENG_RC && credit_is_told(qp) && knows_round_trip(qp) &&
	       !op_is_read_or_atomic(op);
}

static void send_again(struct eng_qp *qp, uint32_t packets, uint64_t now)
{
	struct repair *repair = &qp->req.repair;

	repair->psn = qp->req.unacked_psn;
	repair->packets = packets;
	repair->sent_psn = qp->req.next_psn;
	repair->sent_at = now;
	repair->owed = true;
	repair->waits = true;
	repair->sentinel_at = knows_path(qp) && repair_duplicates_are_answered(&qp->req) ? now : 0;
	qp->req.repeated_psn = qp->req.end_psn;
	/* What is acknowledged next says nothing of a round trip. */
	qp->req.tlp.marked = false;
	count(qp, ENG_COUNT_REPAIRS);
}

bool repair_begin(struct eng_qp *qp, uint64_t now)
{
	struct requester *req = &qp->req;
	struct repair *repair = &req->repair;
	uint32_t packets = 1;

	/*
	 * The NAK has been doubled on its way, or answers what was sent before the repair.  Or what
	 * was sent behind the repair has overtaken it and been dropped: if no probe finds that out
	 * in time, it is sent again.
	 */
	if (repair->waits && repair->packets > 0 && repair->psn == req->unacked_psn) {
		/* When it is probed for, if at all, stays as it is. */
		if (repair->told_at == 0)
			repair->told_at = req->last_progress;
		repair->by_nak = true;
		if (!tlp_has_time_for_reads(qp))
			repair->sent_psn = req->next_psn;
		return true;
	}
	if (!is_possible(qp) || req->retried || req->retries_left == 0 || !peer_may_keep(qp))
		return false;
	if (repair->waits && repair_end(repair) == req->unacked_psn) {
		/* Nothing behind it was kept, or nothing behind it had come. */
		if (!repair->confirmed)
			return false;
		packets = twice(repair->packets);
	}
	/* rule S10: it is a retry, and what it repairs is progress. */
	req->retries_left--;
	req->last_progress = now;
	count(qp, ENG_COUNT_COMPLETER_RETRY);
	/* Further gaps of the same window are the same congestion. */
	if (!req->cwnd_recovering)
		cwnd_loss(qp);
	tlp_told_of_loss(qp, now);
	repair->told_at = now;
	repair->by_nak = true;
	send_again(qp, packets, now);
	repair->follower = false;
	repair->follower_at = knows_path(qp) ? now + req->tlp.round_trip_ns / 2 : 0;
	return true;
}

bool repair_is_unanswered(const struct eng_qp *qp)
{
	const struct repair *repair = &qp->req.repair;

	return repair->waits && psn_diff(repair_end(repair), qp->req.unacked_psn) > 0;
}

/*
 * A READ is missing if the peer has not executed it, as the MSN tells (rule C11), and so is the end
 * of a response that has begun, since no ACK is sent amid one.  Else it may be on its way.
 */
static bool tells_of_read(const struct eng_qp *qp, const struct eng_send_wqe *wqe, uint32_t msn)
{
	return psn_diff(msn, wqe->ssn) < 0 || qp->req.unacked_psn != wqe->first_psn;
}

static bool tells_of_loss(const struct eng_qp *qp, const struct wire_packet *answer, uint64_t now)
{
	const struct requester *req = &qp->req;
	const struct eng_send_wqe *oldest = sq_at(qp, qp->sq->tail);

	if (oldest->op == ENG_READ)
		return tells_of_read(qp, oldest, answer->msn);
	if (answer->psn != psn_sub(req->unacked_psn, 1))
		return false;
	/* After a silence nothing else is on its way, and no queue either. */
	return !req->repair.waits ||
	       elapsed(req->repair.sentinel_at, now) >= req->tlp.round_trip_ns / ROUND_TRIP_PARTS;
}

void repair_sentinel_answered(struct eng_qp *qp, const struct wire_packet *answer, uint64_t now)
{
	struct requester *req = &qp->req;
	struct repair *repair = &req->repair;
	uint32_t packets = 1;

	if (repair->sentinel_at < req->last_progress || repair->owed || !is_possible(qp) ||
	    !tells_of_loss(qp, answer, now))
		return;
	if (repair_is_unanswered(qp))
		packets = packets_left(qp);
	else if (!req->cwnd_recovering)
		cwnd_loss(qp);
	tlp_told_of_loss(qp, now);
	repair->told_at = now;
	repair->by_nak = false;
	send_again(qp, packets, now);
}

bool repair_probe(struct eng_qp *qp, uint64_t now)
{
	struct repair *repair = &qp->req.repair;
	bool again = repair_is_unanswered(qp);
	uint32_t packets = 1;

	if (!is_possible(qp) || !(repair->confirmed || again))
		return false;
	if (again) {
		packets = packets_left(qp);
	} else {
		/* Nothing behind what was sent again last has been acknowledged. */
		if (repair->packets > 0 && repair_end(repair) == qp->req.unacked_psn)
			packets = twice(repair->packets);
		repair->told_at = 0;
		repair->by_nak = false;
	}
	send_again(qp, packets, now);
	return true;
}

void repair_unsent(struct eng_qp *qp, const struct eng_burst *burst)
{
	if (gaps_exist(qp) && burst->first_psn == qp->req.gaps.sent_from_psn)
		gaps_unsent(qp);
	else
		qp->req.repair.owed = qp->req.repair.waits;
}

void repair_progress(struct eng_qp *qp)
{
	struct repair *repair = &qp->req.repair;
	int32_t beyond = psn_diff(qp->req.unacked_psn, repair_end(repair));

	if (beyond < 0)
		return;
	/* What has come before it has left was overtaken, or is answered late. */
	if (repair->owed && !repair->by_nak) {
		repair_stop(qp);
		return;
	}
	if (beyond == 0)
		return;
	if (!repair->owed) {
		count(qp, ENG_COUNT_JUMPS);
		repair->confirmed = true;
	}
	/* Acknowledged before it has left, that was no answer to it. */
	repair->owed = false;
	repair->psn = qp->req.unacked_psn;
	repair->packets = 0;
}

/*
 * A probe has supposed a loss that no response told of.  What acknowledges it sooner than a round
 * trip after it is a late ACK of what had been sent first, and nothing need be missing behind it.
 */
static bool was_late(const struct eng_qp *qp, uint64_t now)
{
	const struct repair *repair = &qp->req.repair;
	uint64_t round_trip = qp->req.tlp.round_trip_ns;

	if (round_trip == 0)
		round_trip = TLP_MIN_NS;
	return repair->told_at == 0 && elapsed(repair->sent_at, now) < round_trip * 3 / 4;
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

	if (!repair->waits || qp->req.unacked_psn != repair_end(repair))
		return;
	if (is_over(qp) || was_late(qp, now)) {
		repair_stop(qp);
		return;
	}
	/* If it is there, its response is on its way behind this ACK. */
	if (tlp_times_reads(qp) && op_is_read_or_atomic(sq_at(qp, qp->sq->tail)->op))
		return;
	if (!repair->confirmed) {
		sendqueue_go_back(qp);
		return;
	}
	if (!is_possible(qp))
		return;
	/* It was sent before the repair and is not there: lost, or the peer had no more room. */
	send_again(qp, left < twice(repair->packets) ? left : twice(repair->packets), now);
}

void repair_responded(struct eng_qp *qp, uint64_t now)
{
	struct repair *repair = &qp->req.repair;

	if (!tlp_times_reads(qp))
		repair_acknowledged(qp, now);
	else if (repair->waits && (repair->packets == 0 || is_over(qp)))
		repair_stop(qp);
}
