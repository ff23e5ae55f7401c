/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "schedule.h"

#include "completer.h"
#include "credit.h"
#include "ecn.h"
#include "requester.h"
#include "response.h"
#include "sendqueue.h"
#include "cwnd.h"

enum {
	/* So long an ACK waits for data that may go the same way, or for the rest of a message. */
	ANSWER_WAIT_NS = 50000,
	REST_WAIT_NS = 10000,
	/* So many messages in a round are no stream, and their ACK may wait for an answer. */
	FEW_MESSAGES = 2,
	/* After so many messages without a post an application is not about to answer. */
	MANY_UNANSWERED = 8,
	/*
	 * Packets of a stream: of more under way, a post belongs to one; of more received, a long
	 * message is acknowledged while it is under way.  It is also about a full burst of packets
	 * of the largest size.
	 */
	STREAM_PACKETS = 16,
	/* What a transport that is nearly full still takes. */
	SHORT_BURST = 8,
};

/* What has been owed has left, or nothing was. */
static void no_ack_waits(struct schedule *schedule)
{
	schedule->ack_due = 0;
	schedule->ack_wait = ACK_WAIT_REST;
}

/*
 * A program that answers each SEND need not answer a WRITE, which makes no completion.  UCX's
 * MPI_Fetch_and_op is three SENDs that are answered and a WRITE that is not: its ACK would wait for
 * ANSWER_WAIT_NS each time if answers to the SENDs counted for it.
 */
static bool is_silent(uint8_t opcode)
{
	return wire_op_family(opcode) == WIRE_FAMILY_WRITE &&
	       !(wire_op_headers(opcode) & WIRE_HAS_IMMDT);
}

void schedule_received(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now)
{
	struct schedule *schedule = &qp->schedule;

	schedule->heard = true;
	/* The last one may have left behind requests. */
	if (!qp->resp.ack_owed)
		no_ack_waits(schedule);
	if (schedule->received_at != now) {
		schedule->received_at = now;
		schedule->messages = 0;
	}
	/* Responses make no ACK, so they do not hurry one. */
	if (!wire_op_is_request(packet->opcode))
		return;
	schedule->unanswered++;
	if (wire_op_position(packet->opcode) & (WIRE_LAST | WIRE_ONLY)) {
		schedule->messages++;
		schedule->since_post++;
		schedule->silent = is_silent(packet->opcode);
	}
}

/* ---- requests ---- */

static uint32_t packets_unsent(const struct eng_qp *qp)
{
	return psn_sub(qp->req.post_psn, qp->req.next_psn);
}

static uint32_t posts_for_burst(const struct eng_qp *qp)
{
	/* Where a burst costs no system call the peer may work on it while more is posted. */
	if (qp->transport_waits || qp->schedule.burst_packets == 0)
		return STREAM_PACKETS;
	return qp->schedule.burst_packets;
}

static bool newest_is_signaled(const struct eng_qp *qp)
{
	return qp->sq->head != qp->sq->tail && is_signaled(qp, sq_at(qp, qp->sq->head - 1));
}

/*
 * Is the request posted last the first of a batch that is signaled?  The application will wait for
 * its completion, not for those behind it, so the peer may have it while they are posted.
 */
static bool ends_batch(struct eng_qp *qp)
{
	if (!newest_is_signaled(qp))
		return false;
	return qp->schedule.gathered_signals++ == 0 && packets_unsent(qp) > STREAM_PACKETS;
}

/*
 * Gather posts while packets are in flight: the round that brings their ACKs sends all of them in
 * one call.  Three exceptions.  An answer to a message that has just come must not wait for the
 * ACK of the message before it, which the peer has sent right behind its own: that would cost each
 * round trip a round.  When no application polls, the next round may be far, so only streams are
 * gathered, whose ACKs are on their way.  And packets sent without AckReq may have arrived long
 * ago, so once a round has passed they are no reason to wait.
 *
 * On an idle wire a post leaves at once, unless the application polls and its earlier posts came
 * in bursts: it has waited for a completion, and will post the next burst now.
 */
static bool may_gather(const struct eng_qp *qp, const struct eng_hint *hint)
{
	const struct schedule *schedule = &qp->schedule;
	uint32_t in_flight = sendqueue_in_flight(qp);
	bool is_stream = schedule->gathered_before > STREAM_PACKETS;

	if (schedule->gathered >= posts_for_burst(qp))
		return false;
	if (in_flight == 0)
		return is_stream && hint->polled;
	if (!hint->polled)
		return (is_stream || in_flight > STREAM_PACKETS) && cwnd_ack_is_due(qp);
	return in_flight > STREAM_PACKETS ||
	       (!schedule->heard &&
		(cwnd_ack_is_due(qp) || schedule->sent_in_round == hint->round));
}

inline enum eng_tx schedule_posted(struct eng_qp *qp, const struct eng_hint *hint)
{
	qp->schedule.gathered++;
	qp->schedule.no_answers[qp->schedule.silent] = false;
	qp->schedule.since_post = 0;
	if (hint->share_waits && is_reliable(qp))
		return ENG_TX_SHARE;
	return !ends_batch(qp) && may_gather(qp, hint) ? ENG_TX_GATHER : ENG_TX_BURST;
}

/* What is known now about how many posts make a full burst. */
static void note_sent(struct eng_qp *qp, const struct eng_burst *burst, const struct eng_hint *hint)
{
	struct schedule *schedule = &qp->schedule;

	/* A division, so not for each of many alike. */
	if (schedule->burst_segment != burst->segment) {
		uint32_t fit = burst->max_bytes / burst->segment;

		schedule->burst_segment = burst->segment;
		schedule->burst_packets = fit < burst->max_packets ? fit : burst->max_packets;
	}
	/* Decays slowly: a burst may follow a single post. */
	schedule->gathered_before /= 2;
	if (schedule->gathered_before < schedule->gathered)
		schedule->gathered_before = schedule->gathered;
	schedule->gathered = 0;
	schedule->gathered_signals = 0;
	schedule->heard = false;
	schedule->sent_at = hint->now;
	schedule->sent_in_round = hint->round;
	schedule->answers_next = true;
}

/*
 * Let the ACK that is owed travel behind a burst of requests: the transport takes both for hardly
 * more than one, and so does the peer, which often waits for both (the answer, and the completion
 * of what is answered) before it sends again.
 */
static void let_ack_ride(struct eng_qp *qp, struct eng_burst *burst, enum eng_owed owed)
{
	if (owed != ENG_OWED_SOON)
		return;
	/* The ACK would end the peer's polling before the rest of the answer has come. */
	if (qp->schedule.ack_wait != ACK_WAIT_REST && qp->req.next_wqe != qp->sq->head)
		return;
	response_ride(qp, burst);
	if (burst->ack_rides)
		qp->schedule.unanswered = 0;
}

/*
 * Has the requester to wait for its turn in the share?  An unreliable one takes nothing of it.  Nor
 * has it to if the ACK that makes room for all is not on its way: of what is under way without
 * AckReq it is asked for by what is sent next.
 */
static bool share_is_for_others(const struct eng_qp *qp)
{
	bool holds_room = sendqueue_awaits_answer(qp) && !cwnd_ack_is_due(qp);

	return is_reliable(qp) && !holds_room && can_request(qp) &&
	       qp->req.next_wqe != qp->sq->head;
}

/* Caller knows that the requester is not done. */
static enum eng_tx requests(struct eng_qp *qp, struct eng_burst *burst, const struct eng_hint *hint,
			    enum eng_owed owed)
{
	bool is_full = hint->full && packets_unsent(qp) > SHORT_BURST;
	enum eng_tx reason;

	/* An ACK solicitation or a repair takes no room, and the ACK makes the room that other QPs
	 * wait for. */
	if (can_request(qp) && loss_acts(qp)) {
		if (is_full)
			return ENG_TX_FULL;
		reason = requester_ask(qp, burst);
		if (reason != ENG_TX_IDLE)
			return reason;
	}
	if (hint->share_waits && share_is_for_others(qp))
		return ENG_TX_SHARE;
	if (hint->occasion != ENG_LAST && cwnd_ack_is_due(qp) && can_request(qp) &&
	    requester_awaits_room(qp, posts_for_burst(qp)))
		return ENG_TX_CWND;
	if (is_full)
		return ENG_TX_FULL;
	if (!is_reliable(qp) && can_request(qp))
		completer_sent(qp, hint->now);
	reason = requester_transmit(qp, burst, hint->now);
	if (reason == ENG_TX_BURST && burst->kind == ENG_BURST_REQUESTS) {
		let_ack_ride(qp, burst, owed);
		note_sent(qp, burst, hint);
	}
	return reason;
}

/* ---- responses ---- */

/*
 * Would the plain ACK that is owed report no credits, right after messages were completed?  The
 * application is likely to post receives as soon as it has seen them; an ACK behind that saves the
 * peer a limited request and an RNR NAK.
 */
static bool ack_awaits_receive(const struct eng_qp *qp)
{
	return qp->reports_credits && qp->resp.previous_opcode < 0 && credit_free(qp) == 0 &&
	       qp->resp.wqes_done > 0;
}

bool schedule_receive_posted(struct eng_qp *qp)
{
	struct schedule *schedule = &qp->schedule;
	enum eng_owed owed = response_owed(qp);

	/* Those before the first message say nothing of what it does with one. */
	if (qp->resp.wqes_done > 0)
		schedule->since_post = 0;
	/* rule C10: credits for a peer that may have run out of them do not wait for a round. */
	return owed == ENG_OWED_NOW ||
	       (owed == ENG_OWED_SOON && schedule->ack_due &&
		schedule->ack_wait == ACK_WAIT_RECEIVE && !ack_awaits_receive(qp));
}

/*
 * May the ACK that is owed wait for data that go the same way, or for the next packets?  The peer
 * gets its data earlier; and one that polls for the completion of what we have got is still polling
 * when our data arrive, instead of spinning on memory with its socket unread.  rule S7: not for
 * long, not for a QP that does not answer, and not in a stream of messages: at most one waits.
 */
static bool may_wait_for_answer(const struct eng_qp *qp, const struct eng_hint *hint)
{
	const struct schedule *schedule = &qp->schedule;
	bool one_waits = schedule->ack_wait != ACK_WAIT_REST &&
			 schedule->ack_due != hint->now + ANSWER_WAIT_NS;

	/* XRC targets: no post will ever take an ACK along. */
	if (!hint->watched || qp->type == ENG_XRC_RECV || schedule->no_answers[schedule->silent])
		return false;
	/* In the middle of a long message its sender may be waiting to send the rest. */
	if (qp->resp.previous_opcode >= 0 && schedule->unanswered > STREAM_PACKETS)
		return false;
	return schedule->messages <= (one_waits ? 0 : FEW_MESSAGES);
}

static bool ack_may_wait(struct eng_qp *qp, const struct eng_hint *hint)
{
	struct schedule *schedule = &qp->schedule;
	/* It would say that there are no credits, and soon there may be some (rule C10). */
	bool for_receive = ack_awaits_receive(qp);
	bool for_answer = qp->resp.previous_opcode < 0;

	if (schedule->received_at != hint->now)
		schedule->messages = 0;
	/*
	 * The message behind a stream of WRITEs or READs tells the application that they are over,
	 * and it may end as soon as it has read that, without another call; so it may with the
	 * first message of all.  Then the process would be gone that had to send the ACK for
	 * which the peer waits.
	 */
	if (for_answer && schedule->since_post > MANY_UNANSWERED)
		return false;
	if (schedule->sent_at == hint->now || (!for_receive && !may_wait_for_answer(qp, hint)))
		return false;
	/* The rest of a message comes soon, and then the ACK may wait for the answer. */
	if (!schedule->ack_due || (for_answer && schedule->ack_wait == ACK_WAIT_REST)) {
		schedule->ack_due = hint->now + (for_answer ? ANSWER_WAIT_NS : REST_WAIT_NS);
		schedule->ack_wait = for_receive  ? ACK_WAIT_RECEIVE
				     : for_answer ? ACK_WAIT_ANSWER
						  : ACK_WAIT_REST;
	}
	if (hint->now < schedule->ack_due)
		return true;
	if (!for_receive && for_answer)
		schedule->no_answers[schedule->silent] = true;
	return false;
}

static enum eng_tx responses(struct eng_qp *qp, struct eng_burst *burst,
			     const struct eng_hint *hint, enum eng_owed owed)
{
	enum eng_tx reason;

	if (owed == ENG_OWED_NOTHING) {
		qp->schedule.unanswered = 0;
		return ENG_TX_IDLE;
	}
	if (owed == ENG_OWED_SOON && hint->occasion == ENG_ROUND && ack_may_wait(qp, hint))
		return ENG_TX_ACK_DELAY;
	if (hint->full && qp->resp.replay_pending > 0)
		return ENG_TX_FULL;
	no_ack_waits(&qp->schedule);
	qp->schedule.unanswered = 0;
	reason = response_transmit(qp, burst, hint->now);
	if (reason == ENG_TX_BURST)
		qp->schedule.answers_next = false;
	return reason;
}

/*
 * Both sides have their turn when both have much to send.  Only an ACK that waits for the answer to
 * leave as a whole stays behind requests, and not for longer than it would wait without any; but
 * when the answer is posted after that, it goes with it, since one call sends both.  In front of
 * it, the ACK would end the polling of a peer that then spins on memory with its socket unread:
 * where both ends of a pair do so and answer after 100 us, an exchange takes 0.13 ms so, and
 * 0.37 ms with the ACK in front; ib_write_lat of 256 KiB 53 us, and 82 us (medians of five).
 */
static bool answers_are_next(const struct schedule *schedule, enum eng_owed owed,
			     const struct eng_hint *hint)
{
	return schedule->answers_next && owed != ENG_OWED_NOTHING &&
	       (owed == ENG_OWED_NOW || schedule->ack_wait == ACK_WAIT_REST ||
		(hint->occasion != ENG_POST && hint->now >= schedule->ack_due));
}

/* Is nothing else to be tried?  When an answer is refused the QP has to enter ERR first. */
static bool is_final(enum eng_tx reason)
{
	return reason <= ENG_TX_REFUSED;
}

/*
 * Of two reasons to wait, which one is told?  That of the requests, if any wait; but no packet of
 * the peer's brings back an answer that waits for room.
 */
static enum eng_tx reason_of_both(enum eng_tx requests, enum eng_tx responses)
{
	return requests == ENG_TX_IDLE || responses == ENG_TX_FULL ? responses : requests;
}

/* There are requests to send, or there may be. */
static __attribute__((noinline)) enum eng_tx both_sides(struct eng_qp *qp, struct eng_burst *burst,
							const struct eng_hint *hint,
							enum eng_owed owed)
{
	bool answers_first = answers_are_next(&qp->schedule, owed, hint);
	enum eng_tx of_requests = ENG_TX_IDLE, of_responses = ENG_TX_IDLE;

	if (answers_first) {
		of_responses = responses(qp, burst, hint, owed);
		if (is_final(of_responses))
			return of_responses;
	}
	if (hint->sides & ENG_REQUESTS) {
		of_requests = requests(qp, burst, hint, owed);
		if (is_final(of_requests))
			return of_requests;
	}
	if (!answers_first) {
		of_responses = responses(qp, burst, hint, owed);
		if (is_final(of_responses))
			return of_responses;
	}
	return reason_of_both(of_requests, of_responses);
}

enum eng_tx schedule_transmit(struct eng_qp *qp, struct eng_burst *burst,
			      const struct eng_hint *hint)
{
	enum eng_owed owed = hint->sides & ENG_RESPONSES ? response_owed(qp) : ENG_OWED_NOTHING;
	enum eng_tx reason;

	if (ecn_owes_cnp(qp))
		return ecn_transmit(qp, burst);
	/* Most rounds end here: there is an ACK at most, and that waits for an answer. */
	if (requester_is_done(qp)) {
		reason = responses(qp, burst, hint, owed);
	} else {
		reason = both_sides(qp, burst, hint, owed);
		cwnd_publish(qp);
	}
	if (reason == ENG_TX_BURST)
		burst->last = requester_is_done(qp) && response_owed(qp) == ENG_OWED_NOTHING;
	return reason;
}

uint64_t schedule_deadline(const struct eng_qp *qp)
{
	return qp->schedule.ack_due && response_owed(qp) == ENG_OWED_SOON ? qp->schedule.ack_due
									  : ENG_NEVER;
}
