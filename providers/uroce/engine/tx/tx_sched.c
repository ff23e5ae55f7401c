/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "tx_sched.h"

#include "engine/cc/cwnd.h"
#include "engine/cc/ecn.h"
#include "engine/credit.h"
#include "engine/rx/completer.h"
#include "engine/rx/response.h"
#include "requester.h"
#include "sq.h"

enum {
	/* ACK delay in ns: for a reply in the same direction, and for the rest of a message. */
	REPLY_WAIT_NS = 50000,
	REST_WAIT_NS = 10000,
	/* With at most this many messages in a poll the ACK may be delayed for a reply. */
	ACK_DELAY_MAX_MESSAGES = 2,
	/* An application that has received this many messages without a post will not reply. */
	NO_REPLY_MESSAGES = 8,
	/*
	 * Minimum number of packets of a stream: a post belongs to one if more are in flight, and a
	 * long message is acknowledged after this many.  About a full burst of the largest packets.
	 */
	STREAM_PACKETS = 16,
	/* Number of packets that a nearly full transport still accepts. */
	SHORT_BURST_PACKETS = 8,
};

/* No ACK is delayed any more. */
static void ack_delay_cancel(struct tx_sched *tx_sched)
{
	tx_sched->ack_due = 0;
	tx_sched->ack_wait = ACK_WAIT_REST;
}

/*
 * A program that answers each SEND need not answer a WRITE, which makes no completion.  UCX's
 * MPI_Fetch_and_op is three SENDs that are answered and a WRITE that is not: its ACK would wait for
 * REPLY_WAIT_NS each time if answers to the SENDs counted for it.
 */
static bool is_silent(uint8_t opcode)
{
	return wire_op_family(opcode) == WIRE_FAMILY_WRITE &&
	       !(wire_op_headers(opcode) & WIRE_HAS_IMMDT);
}

void tx_sched_received(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now)
{
	struct tx_sched *tx_sched = &qp->tx_sched;

	tx_sched->rx_since_tx = true;
	/* The last one may have left behind requests. */
	if (!qp->resp.ack_pending)
		ack_delay_cancel(tx_sched);
	if (tx_sched->received_at != now) {
		tx_sched->received_at = now;
		tx_sched->messages = 0;
	}
	/* Responses make no ACK, so they do not hurry one. */
	if (!wire_op_is_request(packet->opcode))
		return;
	tx_sched->unanswered++;
	if (wire_op_position(packet->opcode) & (WIRE_LAST | WIRE_ONLY)) {
		tx_sched->messages++;
		tx_sched->since_post++;
		tx_sched->last_is_silent = is_silent(packet->opcode);
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
	if (qp->lossless_transport || qp->tx_sched.burst_packets == 0)
		return STREAM_PACKETS;
	return qp->tx_sched.burst_packets;
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
	return qp->tx_sched.gathered_signals++ == 0 && packets_unsent(qp) > STREAM_PACKETS;
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
static bool may_gather(const struct eng_qp *qp, const struct eng_tx_ctx *ctx)
{
	const struct tx_sched *tx_sched = &qp->tx_sched;
	uint32_t in_flight = sq_in_flight(qp);
	bool is_stream = tx_sched->gathered_before > STREAM_PACKETS;

	if (tx_sched->gathered >= posts_for_burst(qp))
		return false;
	if (in_flight == 0)
		return is_stream && ctx->polled;
	if (!ctx->polled)
		return (is_stream || in_flight > STREAM_PACKETS) && ack_req_in_flight(qp);
	return in_flight > STREAM_PACKETS ||
	       (!tx_sched->rx_since_tx &&
		(ack_req_in_flight(qp) || tx_sched->sent_in_round == ctx->round));
}

inline enum eng_tx tx_sched_post(struct eng_qp *qp, const struct eng_tx_ctx *ctx)
{
	qp->tx_sched.gathered++;
	qp->tx_sched.app_never_replies[qp->tx_sched.last_is_silent] = false;
	qp->tx_sched.since_post = 0;
	if (ctx->budget_waits && is_reliable(qp))
		return ENG_TX_BUDGET;
	return !ends_batch(qp) && may_gather(qp, ctx) ? ENG_TX_BATCH : ENG_TX_BURST;
}

/* Records how many posts make a full burst. */
static void note_sent(struct eng_qp *qp, const struct eng_burst *burst,
		      const struct eng_tx_ctx *ctx)
{
	struct tx_sched *tx_sched = &qp->tx_sched;

	/* A division, so not for each of many alike. */
	if (tx_sched->burst_segment != burst->segment) {
		uint32_t fit = burst->max_bytes / burst->segment;

		tx_sched->burst_segment = burst->segment;
		tx_sched->burst_packets = fit < burst->max_packets ? fit : burst->max_packets;
	}
	/* Decays slowly: a burst may follow a single post. */
	tx_sched->gathered_before /= 2;
	if (tx_sched->gathered_before < tx_sched->gathered)
		tx_sched->gathered_before = tx_sched->gathered;
	tx_sched->gathered = 0;
	tx_sched->gathered_signals = 0;
	tx_sched->rx_since_tx = false;
	tx_sched->sent_at = ctx->now;
	tx_sched->sent_in_round = ctx->round;
	tx_sched->responses_first = true;
}

/*
 * Let the ACK that is owed travel behind a burst of requests: the transport takes both for hardly
 * more than one, and so does the peer, which often waits for both (the answer, and the completion
 * of what is answered) before it sends again.
 */
static void piggyback_ack(struct eng_qp *qp, struct eng_burst *burst, enum eng_resp_pending owed)
{
	if (owed != ENG_RESP_DELAYABLE)
		return;
	/* The ACK would end the peer's polling before the rest of the answer has come. */
	if (qp->tx_sched.ack_wait != ACK_WAIT_REST && qp->req.next_wqe != qp->sq->head)
		return;
	response_piggyback_ack(qp, burst);
	if (burst->has_ack)
		qp->tx_sched.unanswered = 0;
}

/*
 * Returns true if the requester must wait for the in-flight budget.  UC and UD requesters do not
 * use it.  A requester whose packets in flight have no AckReq must not wait: its next packet
 * requests the ACK that frees the budget.
 */
static bool share_is_for_others(const struct eng_qp *qp)
{
	bool holds_room = sq_awaits_response(qp) && !ack_req_in_flight(qp);

	return is_reliable(qp) && !holds_room && can_request(qp) &&
	       qp->req.next_wqe != qp->sq->head;
}

/* To be called only if requester_is_done() is false. */
static enum eng_tx requests(struct eng_qp *qp, struct eng_burst *burst,
			    const struct eng_tx_ctx *ctx, enum eng_resp_pending owed)
{
	bool is_full = ctx->full && packets_unsent(qp) > SHORT_BURST_PACKETS;
	enum eng_tx reason;

	/* An ACK solicitation or a repair takes no room, and the ACK makes the room that other QPs
	 * wait for. */
	if (can_request(qp) && loss_acts(qp)) {
		if (is_full)
			return ENG_TX_BACKPRESSURE;
		reason = requester_transmit_control(qp, burst);
		if (reason != ENG_TX_IDLE)
			return reason;
	}
	if (ctx->budget_waits && share_is_for_others(qp))
		return ENG_TX_BUDGET;
	if (ctx->trigger != ENG_TX_TRIGGER_FINAL && ack_req_in_flight(qp) && can_request(qp) &&
	    requester_waits_for_cwnd(qp, posts_for_burst(qp)))
		return ENG_TX_CWND;
	if (is_full)
		return ENG_TX_BACKPRESSURE;
	if (!is_reliable(qp) && can_request(qp))
		completer_sent(qp, ctx->now);
	reason = requester_transmit(qp, burst, ctx->now);
	if (reason == ENG_TX_BURST && burst->kind == ENG_BURST_REQUESTS) {
		piggyback_ack(qp, burst, owed);
		note_sent(qp, burst, ctx);
	}
	return reason;
}

/* ---- responses ---- */

/*
 * Returns true if the pending ACK would report no credits right after a message has completed.  The
 * application will probably post receives as soon as it has polled the completion; an ACK after
 * that saves the peer a limited request and an RNR NAK.
 */
static bool ack_waits_for_recv_post(const struct eng_qp *qp)
{
	return qp->reports_credits && qp->resp.previous_opcode < 0 && credit_free(qp) == 0 &&
	       qp->resp.wqes_done > 0;
}

bool tx_sched_recv_post(struct eng_qp *qp)
{
	struct tx_sched *tx_sched = &qp->tx_sched;
	enum eng_resp_pending owed = response_pending(qp);

	/* Those before the first message say nothing of what it does with one. */
	if (qp->resp.wqes_done > 0)
		tx_sched->since_post = 0;
	/* rule C10: credits for a peer that may have run out of them do not wait for a round. */
	return owed == ENG_RESP_IMMEDIATE ||
	       (owed == ENG_RESP_DELAYABLE && tx_sched->ack_due &&
		tx_sched->ack_wait == ACK_WAIT_RECEIVE && !ack_waits_for_recv_post(qp));
}

/*
 * May the ACK that is owed wait for data that go the same way, or for the next packets?  The peer
 * gets its data earlier; and one that polls for the completion of what we have got is still polling
 * when our data arrive, instead of spinning on memory with its socket unread.  rule S7: not for
 * long, not for a QP that does not answer, and not in a stream of messages: at most one waits.
 */
static bool may_wait_for_answer(const struct eng_qp *qp, const struct eng_tx_ctx *ctx)
{
	const struct tx_sched *tx_sched = &qp->tx_sched;
	bool one_waits = tx_sched->ack_wait != ACK_WAIT_REST &&
			 tx_sched->ack_due != ctx->now + REPLY_WAIT_NS;

	/* XRC targets: no post will ever take an ACK along. */
	if (!ctx->watched || qp->type == ENG_XRC_RECV ||
	    tx_sched->app_never_replies[tx_sched->last_is_silent])
		return false;
	/* In the middle of a long message its sender may be waiting to send the rest. */
	if (qp->resp.previous_opcode >= 0 && tx_sched->unanswered > STREAM_PACKETS)
		return false;
	return tx_sched->messages <= (one_waits ? 0 : ACK_DELAY_MAX_MESSAGES);
}

static bool ack_may_wait(struct eng_qp *qp, const struct eng_tx_ctx *ctx)
{
	struct tx_sched *tx_sched = &qp->tx_sched;
	/* It would say that there are no credits, and soon there may be some (rule C10). */
	bool for_receive = ack_waits_for_recv_post(qp);
	bool for_answer = qp->resp.previous_opcode < 0;

	if (tx_sched->received_at != ctx->now)
		tx_sched->messages = 0;
	/*
	 * The message behind a stream of WRITEs or READs tells the application that they are over,
	 * and it may end as soon as it has read that, without another call; so it may with the
	 * first message of all.  Then the process would be gone that had to send the ACK for
	 * which the peer waits.
	 */
	if (for_answer && tx_sched->since_post > NO_REPLY_MESSAGES)
		return false;
	if (tx_sched->sent_at == ctx->now || (!for_receive && !may_wait_for_answer(qp, ctx)))
		return false;
	/* The rest of a message comes soon, and then the ACK may wait for the answer. */
	if (!tx_sched->ack_due || (for_answer && tx_sched->ack_wait == ACK_WAIT_REST)) {
		tx_sched->ack_due = ctx->now + (for_answer ? REPLY_WAIT_NS : REST_WAIT_NS);
		tx_sched->ack_wait = for_receive  ? ACK_WAIT_RECEIVE
				     : for_answer ? ACK_WAIT_ANSWER
						  : ACK_WAIT_REST;
	}
	if (ctx->now < tx_sched->ack_due)
		return true;
	if (!for_receive && for_answer)
		tx_sched->app_never_replies[tx_sched->last_is_silent] = true;
	return false;
}

static enum eng_tx responses(struct eng_qp *qp, struct eng_burst *burst,
			     const struct eng_tx_ctx *ctx, enum eng_resp_pending owed)
{
	enum eng_tx reason;

	if (owed == ENG_RESP_NONE) {
		qp->tx_sched.unanswered = 0;
		return ENG_TX_IDLE;
	}
	if (owed == ENG_RESP_DELAYABLE && ctx->trigger == ENG_TX_TRIGGER_POLL &&
	    ack_may_wait(qp, ctx))
		return ENG_TX_ACK_DELAY;
	if (ctx->full && qp->resp.resp_res_pending > 0)
		return ENG_TX_BACKPRESSURE;
	ack_delay_cancel(&qp->tx_sched);
	qp->tx_sched.unanswered = 0;
	reason = response_transmit(qp, burst, ctx->now);
	if (reason == ENG_TX_BURST)
		qp->tx_sched.responses_first = false;
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
static bool responses_go_first(const struct tx_sched *tx_sched, enum eng_resp_pending owed,
			       const struct eng_tx_ctx *ctx)
{
	return tx_sched->responses_first && owed != ENG_RESP_NONE &&
	       (owed == ENG_RESP_IMMEDIATE || tx_sched->ack_wait == ACK_WAIT_REST ||
		(ctx->trigger != ENG_TX_TRIGGER_POST && ctx->now >= tx_sched->ack_due));
}

/* Returns true if this result ends the call: a burst, or an error that the QP must handle first. */
static bool is_final(enum eng_tx reason)
{
	return reason <= ENG_TX_RESP_ERROR;
}

/*
 * The reason to return if both sides wait: the requester's, except that backpressure on responses
 * takes precedence, since no packet from the peer would end it.
 */
static enum eng_tx reason_of_both(enum eng_tx requests, enum eng_tx responses)
{
	return requests == ENG_TX_IDLE || responses == ENG_TX_BACKPRESSURE ? responses : requests;
}

/* For a QP that may have requests to send. */
static __attribute__((noinline)) enum eng_tx both_sides(struct eng_qp *qp, struct eng_burst *burst,
							const struct eng_tx_ctx *ctx,
							enum eng_resp_pending owed)
{
	bool answers_first = responses_go_first(&qp->tx_sched, owed, ctx);
	enum eng_tx of_requests = ENG_TX_IDLE, of_responses = ENG_TX_IDLE;

	if (answers_first) {
		of_responses = responses(qp, burst, ctx, owed);
		if (is_final(of_responses))
			return of_responses;
	}
	if (ctx->sides & ENG_REQUESTS) {
		of_requests = requests(qp, burst, ctx, owed);
		if (is_final(of_requests))
			return of_requests;
	}
	if (!answers_first) {
		of_responses = responses(qp, burst, ctx, owed);
		if (is_final(of_responses))
			return of_responses;
	}
	return reason_of_both(of_requests, of_responses);
}

enum eng_tx tx_sched_transmit(struct eng_qp *qp, struct eng_burst *burst,
			      const struct eng_tx_ctx *ctx)
{
	enum eng_resp_pending owed =
		ctx->sides & ENG_RESPONSES ? response_pending(qp) : ENG_RESP_NONE;
	enum eng_tx reason;

	if (ecn_cnp_pending(qp))
		return ecn_transmit(qp, burst);
	/* Most rounds end here: there is an ACK at most, and that waits for an answer. */
	if (requester_is_done(qp)) {
		reason = responses(qp, burst, ctx, owed);
	} else {
		reason = both_sides(qp, burst, ctx, owed);
		budget_publish(qp);
	}
	if (reason == ENG_TX_BURST)
		burst->last = requester_is_done(qp) && response_pending(qp) == ENG_RESP_NONE;
	return reason;
}

uint64_t tx_sched_deadline(const struct eng_qp *qp)
{
	return qp->tx_sched.ack_due && response_pending(qp) == ENG_RESP_DELAYABLE
		       ? qp->tx_sched.ack_due
		       : ENG_NEVER;
}
