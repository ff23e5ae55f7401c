/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "tx_sched.h"

#include "engine/cc/cwnd.h"
#include "engine/cc/ecn.h"
#include "engine/credit.h"
#include "engine/rx/completer.h"
#include "engine/rx/responder.h"
#include "requester.h"
#include "sq.h"

enum {
	/* ACK delay in ns: for a reply in the same direction, and for the rest of a message. */
	REPLY_WAIT_NS = 50000,
	MESSAGE_END_WAIT_NS = 10000,
	/*
	 * With at most this many messages in a progress cycle the ACK may be delayed for a reply.
	 */
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

/* Ends the delay of the pending ACK. */
static void ack_delay_cancel(struct tx_sched *tx_sched)
{
	tx_sched->ack_due = 0;
	tx_sched->ack_wait = ACK_WAIT_MESSAGE_END;
}

/*
 * Returns true if the message makes no completion, so that the application cannot reply to it.  An
 * application may reply to each SEND and not to WRITEs (MPI_Fetch_and_op of UCX: three SENDs with
 * replies and a WRITE without).
 */
static bool has_no_cqe(uint8_t opcode)
{
	return wire_op_family(opcode) == WIRE_FAMILY_WRITE &&
	       !(wire_op_headers(opcode) & WIRE_HAS_IMMDT);
}

void tx_sched_received(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now)
{
	struct tx_sched *tx_sched = &qp->tx_sched;

	tx_sched->rx_since_tx = true;
	/* If no ACK is pending any more, the delayed one was sent with requests. */
	if (!qp->resp.ack_pending)
		ack_delay_cancel(tx_sched);
	if (tx_sched->received_at != now) {
		tx_sched->received_at = now;
		tx_sched->messages = 0;
	}
	/* Responses need no ACK, so they do not end the delay of one. */
	if (!wire_op_is_request(packet->opcode))
		return;
	tx_sched->unanswered++;
	if (wire_op_position(packet->opcode) & (WIRE_LAST | WIRE_ONLY)) {
		tx_sched->messages++;
		tx_sched->since_post++;
		tx_sched->last_has_no_cqe = has_no_cqe(packet->opcode);
	}
}

/* ---- requests ---- */

static uint32_t packets_unsent(const struct eng_qp *qp)
{
	return psn_sub(qp->req.post_psn, qp->req.next_psn);
}

static uint32_t posts_for_burst(const struct eng_qp *qp)
{
	/*
	 * A few posts make a burst if it costs no system call: the peer processes it while more is
	 * posted.
	 */
	if (qp->path_loss == ENG_PATH_LOSSLESS || qp->tx_sched.burst_packets == 0)
		return STREAM_PACKETS;
	return qp->tx_sched.burst_packets;
}

static bool newest_is_signaled(const struct eng_qp *qp)
{
	return qp->sq->head != qp->sq->tail && is_signaled(qp, sq_at(qp, qp->sq->head - 1));
}

/*
 * Returns true if the request posted last is the first signaled one of a batch.  The application
 * will wait for its completion and not for later ones, so the peer may have it now.
 */
static bool ends_batch(struct eng_qp *qp)
{
	if (!newest_is_signaled(qp))
		return false;
	return qp->tx_sched.gathered_signals++ == 0 && packets_unsent(qp) > STREAM_PACKETS;
}

/*
 * Returns true if the post should be batched because packets are in flight: the progress cycle that
 * receives their ACKs sends the batch in one call.  Exceptions: a reply to a message just received
 * must not wait for the ACK of the message before, which would cost a progress cycle for each round
 * trip.  Without a polling application the next progress cycle may be far away, so only streams are
 * batched, whose ACKs are on their way.  Packets without AckReq may have arrived long ago, so after
 * a progress cycle they are no reason to wait.
 *
 * With nothing in flight a post is sent at once, unless the application polls and its earlier posts
 * came in bursts: it has waited for a completion and will now post the next burst.
 */
static bool may_batch(const struct eng_qp *qp, const struct eng_tx_ctx *ctx)
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
	qp->tx_sched.app_never_replies[qp->tx_sched.last_has_no_cqe] = false;
	qp->tx_sched.since_post = 0;
	if (ctx->budget_waits && is_reliable(qp))
		return ENG_TX_BUDGET;
	return !ends_batch(qp) && may_batch(qp, ctx) ? ENG_TX_BATCH : ENG_TX_BURST;
}

/* Accounts for a burst of requests, and records how many posts make a full burst. */
static void mark_sent(struct eng_qp *qp, const struct eng_burst *burst,
		      const struct eng_tx_ctx *ctx)
{
	struct tx_sched *tx_sched = &qp->tx_sched;

	/* A division, so only when the segment size changes. */
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
 * Adds the pending ACK to a burst of requests: the transport sends both for hardly more than one,
 * and the peer often waits for both (the reply, and the completion of its own request).
 */
static void piggyback_ack(struct eng_qp *qp, struct eng_burst *burst, enum eng_resp_pending pending)
{
	if (pending != ENG_RESP_DELAYABLE)
		return;
	/* An ACK now would stop the peer from polling before the rest of the reply arrives. */
	if (qp->tx_sched.ack_wait != ACK_WAIT_MESSAGE_END && qp->req.next_wqe != qp->sq->head)
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
static bool budget_is_for_others(const struct eng_qp *qp)
{
	bool holds_room = sq_awaits_response(qp) && !ack_req_in_flight(qp);

	return is_reliable(qp) && !holds_room && can_request(qp) &&
	       qp->req.next_wqe != qp->sq->head;
}

/*
 * Transmits loss recovery or new requests, with the pending ACK.  Returns ENG_TX_BURST or the
 * reason to wait.  To be called only if requester_is_done() is false.
 */
static enum eng_tx requests(struct eng_qp *qp, struct eng_burst *burst,
			    const struct eng_tx_ctx *ctx, enum eng_resp_pending pending)
{
	bool is_full = ctx->full && packets_unsent(qp) > SHORT_BURST_PACKETS;
	enum eng_tx reason;

	/* An ACK probe or a retransmission needs no room, and its ACK frees room for other QPs. */
	if (can_request(qp) && loss_acts(qp)) {
		if (is_full)
			return ENG_TX_BACKPRESSURE;
		reason = requester_transmit_control(qp, burst);
		if (reason != ENG_TX_IDLE)
			return reason;
	}
	if (ctx->budget_waits && budget_is_for_others(qp))
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
		piggyback_ack(qp, burst, pending);
		mark_sent(qp, burst, ctx);
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
	enum eng_resp_pending pending = response_pending(qp);

	/*
	 * Receives posted before the first message do not show what the application does after one.
	 */
	if (qp->resp.wqes_done > 0)
		tx_sched->since_post = 0;
	/* rule C10: credits for a peer that may have none are not delayed for a progress cycle. */
	return pending == ENG_RESP_IMMEDIATE ||
	       (pending == ENG_RESP_DELAYABLE && tx_sched->ack_due &&
		tx_sched->ack_wait == ACK_WAIT_RECEIVE && !ack_waits_for_recv_post(qp));
}

/*
 * Returns true if the pending ACK may be delayed for data in the same direction or for further
 * packets.  The peer then gets its data earlier, and if it polls for the completion of its request
 * it is still polling when our data arrive, not spinning on memory with its socket unread.  rule
 * S7: only briefly, not for an application that never replies, and only one ACK at a time in a
 * stream of messages.
 */
static bool may_wait_for_reply(const struct eng_qp *qp, const struct eng_tx_ctx *ctx)
{
	const struct tx_sched *tx_sched = &qp->tx_sched;
	bool ack_is_waiting = tx_sched->ack_wait != ACK_WAIT_MESSAGE_END &&
			      tx_sched->ack_due != ctx->now + REPLY_WAIT_NS;

	/* XRC targets have no requests that an ACK could be sent with. */
	if (!ctx->watched || qp->type == ENG_XRC_RECV ||
	    tx_sched->app_never_replies[tx_sched->last_has_no_cqe])
		return false;
	/* In the middle of a long message the peer may wait for an ACK to send the rest. */
	if (qp->resp.previous_opcode >= 0 && tx_sched->unanswered > STREAM_PACKETS)
		return false;
	return tx_sched->messages <= (ack_is_waiting ? 0 : ACK_DELAY_MAX_MESSAGES);
}

static bool ack_may_wait(struct eng_qp *qp, const struct eng_tx_ctx *ctx)
{
	struct tx_sched *tx_sched = &qp->tx_sched;
	/* The ACK would report no credits, and soon there may be some (rule C10). */
	bool for_receive = ack_waits_for_recv_post(qp);
	bool for_reply = qp->resp.previous_opcode < 0;

	if (tx_sched->received_at != ctx->now)
		tx_sched->messages = 0;
	/*
	 * The application has not posted for many messages, or not at all yet.  It may wait for
	 * this one and then exit without another call, so the ACK is sent now.
	 */
	if (for_reply && tx_sched->since_post > NO_REPLY_MESSAGES)
		return false;
	if (tx_sched->sent_at == ctx->now || (!for_receive && !may_wait_for_reply(qp, ctx)))
		return false;
	/* The rest of a message arrives soon; then the ACK may wait for the reply. */
	if (!tx_sched->ack_due || (for_reply && tx_sched->ack_wait == ACK_WAIT_MESSAGE_END)) {
		tx_sched->ack_due = ctx->now + (for_reply ? REPLY_WAIT_NS : MESSAGE_END_WAIT_NS);
		tx_sched->ack_wait = for_receive ? ACK_WAIT_RECEIVE
				     : for_reply ? ACK_WAIT_REPLY
						 : ACK_WAIT_MESSAGE_END;
	}
	if (ctx->now < tx_sched->ack_due)
		return true;
	if (!for_receive && for_reply)
		tx_sched->app_never_replies[tx_sched->last_has_no_cqe] = true;
	return false;
}

static enum eng_tx responses(struct eng_qp *qp, struct eng_burst *burst,
			     const struct eng_tx_ctx *ctx, enum eng_resp_pending pending)
{
	enum eng_tx reason;

	if (pending == ENG_RESP_NONE) {
		qp->tx_sched.unanswered = 0;
		return ENG_TX_IDLE;
	}
	if (pending == ENG_RESP_DELAYABLE && ctx->trigger == ENG_TX_TRIGGER_POLL &&
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
 * Requests and responses alternate if both sides have much to send.  Exception: an ACK that is
 * delayed for a reply goes after the requests until ack_due, and in a call for a post; it is then
 * added to the last burst of the reply, since one call sends both.  An ACK before the reply would
 * end the polling of a peer that then spins on memory with its socket unread (performance.md).
 */
static bool responses_go_first(const struct tx_sched *tx_sched, enum eng_resp_pending pending,
			       const struct eng_tx_ctx *ctx)
{
	return tx_sched->responses_first && pending != ENG_RESP_NONE &&
	       (pending == ENG_RESP_IMMEDIATE || tx_sched->ack_wait == ACK_WAIT_MESSAGE_END ||
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

/* Transmits for a QP that may have requests to send. */
static __attribute__((noinline)) enum eng_tx both_sides(struct eng_qp *qp, struct eng_burst *burst,
							const struct eng_tx_ctx *ctx,
							enum eng_resp_pending pending)
{
	bool response_goes_first = responses_go_first(&qp->tx_sched, pending, ctx);
	enum eng_tx of_requests = ENG_TX_IDLE, of_responses = ENG_TX_IDLE;

	if (response_goes_first) {
		of_responses = responses(qp, burst, ctx, pending);
		if (is_final(of_responses))
			return of_responses;
	}
	if (ctx->sides & ENG_REQUESTS) {
		of_requests = requests(qp, burst, ctx, pending);
		if (is_final(of_requests))
			return of_requests;
	}
	if (!response_goes_first) {
		of_responses = responses(qp, burst, ctx, pending);
		if (is_final(of_responses))
			return of_responses;
	}
	return reason_of_both(of_requests, of_responses);
}

enum eng_tx tx_sched_transmit(struct eng_qp *qp, struct eng_burst *burst,
			      const struct eng_tx_ctx *ctx)
{
	enum eng_resp_pending pending =
		ctx->sides & ENG_RESPONSES ? response_pending(qp) : ENG_RESP_NONE;
	enum eng_tx reason;

	if (ecn_cnp_pending(qp))
		return ecn_transmit(qp, burst);
	/*
	 * Most progress cycles end here: at most an ACK is pending, and it is delayed for a reply.
	 */
	if (requester_is_done(qp)) {
		reason = responses(qp, burst, ctx, pending);
	} else {
		reason = both_sides(qp, burst, ctx, pending);
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
