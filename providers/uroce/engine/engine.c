/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "engine.h"

#include <assert.h>
#include <string.h>

#include "credit.h"
#include "engine/base/aeth.h"
#include "engine/base/types.h"
#include "engine/cc/cwnd.h"
#include "engine/cc/ecn.h"
#include "engine/recovery/read_retry.h"
#include "engine/rx/completer.h"
#include "engine/rx/responder.h"
#include "engine/tx/pkt_hdr.h"
#include "engine/tx/requester.h"
#include "engine/tx/sq.h"
#include "engine/tx/tx_sched.h"
#include "qp_priv.h"
#include "qp_transition.h"
#include "engine/recovery/loss.h"

size_t eng_qp_bytes(uint32_t max_recv_sge)
{
	return (sizeof(struct eng_qp) + max_recv_sge * sizeof(struct eng_sge) + 63) & ~(size_t)63;
}

void eng_qp_init(struct eng_qp *qp, const struct eng_qp_init *init)
{
	memset(qp, 0, sizeof(*qp));
	qp->type = init->type;
	qp->qpn = init->qpn;
	qp->owner = init->owner;
	qp->ops = init->ops;
	qp->sq = init->sq;
	qp->rq = init->rq;
	qp->rq_shared = init->rq_shared;
	qp->max_recv_sge = init->max_recv_sge;
	qp->reports_credits = !init->rq_shared && !init->credits_hidden && is_reliable(qp);
	qp->signal_all = init->signal_all;
	qp->cwnd_packets = init->cwnd_packets;
	qp->attr.pkey = WIRE_DEFAULT_PKEY;
	qp->resp.previous_opcode = -1;
	qp->tx_sched.since_post = TX_SCHED_NO_POST;
	qp->inflight_budget = init->inflight_budget;
	eng_set_cc(qp, ENG_CC_LOCAL);
	cwnd_reset(qp);
}

struct eng_attr *eng_qp_attr(struct eng_qp *qp)
{
	return &qp->attr;
}

enum eng_qp_state eng_qp_state(const struct eng_qp *qp)
{
	return qp->state;
}

struct eng_send_wqe *eng_sq_next(struct eng_qp *qp)
{
	return eng_ring_full(qp->sq) ? NULL : sq_at(qp, qp->sq->head);
}

void eng_sq_push(struct eng_qp *qp)
{
	sq_push(qp);
}

enum eng_tx eng_sq_kick(struct eng_qp *qp, const struct eng_tx_ctx *ctx)
{
	return tx_sched_post(qp, ctx);
}

bool eng_receive_posted(struct eng_qp *qp)
{
	return tx_sched_recv_post(qp);
}

struct eng_recv_wqe *eng_rq_next(struct eng_ring *rq)
{
	return eng_ring_full(rq) ? NULL : eng_ring_slot(rq, rq->head);
}

void eng_flush(struct eng_qp *qp)
{
	if (qp->state != ENG_ERR && qp->state != ENG_SQE)
		return;
	sq_flush(qp);
	if (qp->state == ENG_ERR)
		responder_flush(qp);
}

static enum eng_status receive_request(struct eng_qp *qp, const struct wire_packet *packet,
				       uint64_t now)
{
	if (can_respond(qp))
		return responder_receive(qp, packet, now);
	count(qp, ENG_COUNT_DROPPED);
	return ENG_SUCCESS;
}

/* Functions that handle requests and responses, by service; NULL: the service has none. */
static enum eng_status (*const receivers[][2])(struct eng_qp *, const struct wire_packet *,
					       uint64_t) = {
	[ENG_RC] = { receive_request, completer_receive },
	[ENG_UC] = { unreliable_receive, NULL },
	[ENG_UD] = { datagram_receive, NULL },
	[ENG_XRC_SEND] = { NULL, completer_receive },
	[ENG_XRC_RECV] = { receive_request, NULL },
};

bool eng_needs_timestamp(const struct wire_packet *packet)
{
	return syndrome_kind(packet->syndrome) == AETH_RNR_NAK;
}

static __attribute__((noinline)) void
handle_congestion(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now)
{
	struct cc_state *cc = &qp->req.cc;

	if (packet->congestion & WIRE_CE)
		ecn_marked(qp, packet, now);
	cc->ack_has_ece = qp->ecn.cnp && (packet->congestion & WIRE_BECN) &&
			  wire_op_family(packet->opcode) == WIRE_FAMILY_ACK;
	/* The first window for measuring marks starts now. */
	if (cc->ack_has_ece && !cc->peer_echoes_ce)
		cc->window_psn = qp->req.end_psn;
	cc->peer_echoes_ce |= cc->ack_has_ece;
}

/*
 * Handles a packet that the QP's service, or its side of a connection, does not have: obeys a CNP,
 * drops all others.
 */
static __attribute__((noinline)) void receive_other(struct eng_qp *qp,
						    const struct wire_packet *packet)
{
	if (packet->opcode == WIRE_CNP_OPCODE)
		ecn_notified(qp);
	else
		count(qp, ENG_COUNT_DROPPED);
}

static inline void begin_receive(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now)
{
	if (__builtin_expect(packet->congestion, 0))
		handle_congestion(qp, packet, now);
	tx_sched_received(qp, packet, now);
}

static inline void end_receive(struct eng_qp *qp, enum eng_status verdict)
{
	qp->req.cc.ack_has_ece = false;
	if (verdict != ENG_SUCCESS)
		qp_fail(qp, verdict);
	budget_publish(qp);
}

/* Handles packets without a fast path. */
static __attribute__((noinline)) void receive_any(struct eng_qp *qp,
						  const struct wire_packet *packet, uint64_t now)
{
	enum eng_status (*receive)(struct eng_qp *, const struct wire_packet *, uint64_t);

	receive = receivers[qp->type][wire_op_is_response(packet->opcode)];
	if ((packet->opcode & WIRE_SERVICE_MASK) != message_services[qp->type] || !receive) {
		receive_other(qp, packet);
		return;
	}
	begin_receive(qp, packet, now);
	end_receive(qp, receive(qp, packet, now));
}

/* Tries the fast paths first: for Acknowledges and SENDs of one packet on RC. */
void eng_receive(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now)
{
	enum eng_status verdict;

	count(qp, ENG_COUNT_RECEIVED_PACKETS);
	qp->counters[ENG_COUNT_RECEIVED_BYTES] += packet->payload_length;
	if (qp->type == ENG_RC && packet->opcode == (WIRE_RC | WIRE_ACKNOWLEDGE)) {
		begin_receive(qp, packet, now);
		verdict = completer_receive_fast(qp, packet, now)
				  ? sq_error(qp)
				  : completer_receive(qp, packet, now);
		end_receive(qp, verdict);
	} else if (qp->type == ENG_RC && packet->opcode == (WIRE_RC | WIRE_SEND_ONLY)) {
		begin_receive(qp, packet, now);
		verdict = responder_receive_fast(qp, packet) ? ENG_SUCCESS
							     : receive_request(qp, packet, now);
		end_receive(qp, verdict);
	} else {
		receive_any(qp, packet, now);
	}
}

static inline void count_sent(struct eng_qp *qp, const struct eng_burst *burst)
{
	qp->counters[ENG_COUNT_SENT_PACKETS] += burst->packets;
	qp->counters[ENG_COUNT_SENT_BYTES] += burst->bytes;
}

/* Carries out the verdict of an error; afterwards at most a NAK or an ACK is sent. */
static __attribute__((noinline)) enum eng_tx
handle_tx_error(struct eng_qp *qp, struct eng_burst *burst, enum eng_tx reason)
{
	enum eng_status error = reason == ENG_TX_RESP_ERROR ? ENG_WR_FLUSH_ERR : sq_error(qp);

	if (error != ENG_SUCCESS) {
		qp_fail(qp, error);
		/* now is 0, as neither a NAK nor an ACK is paced. */
		reason = response_transmit(qp, burst, 0);
		burst->last = false;
		count_sent(qp, burst);
	}
	budget_publish(qp);
	return reason;
}

enum eng_tx eng_transmit(struct eng_qp *qp, struct eng_burst *burst, const struct eng_tx_ctx *ctx)
{
	enum eng_tx reason = tx_sched_transmit(qp, burst, ctx);

	if (reason == ENG_TX_BURST)
		count_sent(qp, burst);
	else if (reason <= ENG_TX_LOCAL_ERROR)
		return handle_tx_error(qp, burst, reason);
	return reason;
}

void eng_tx_rollback(struct eng_qp *qp, const struct eng_burst *burst)
{
	qp->counters[ENG_COUNT_SENT_PACKETS] -= burst->packets;
	qp->counters[ENG_COUNT_SENT_BYTES] -= burst->bytes;
	if (burst->kind == ENG_BURST_ACK_PROBE)
		loss_rollback(qp, LOSS_ACTION_ACK_PROBE);
	else if (burst->kind == ENG_BURST_CNP)
		ecn_rollback(qp);
	else if (burst->kind == ENG_BURST_RETRANSMIT)
		loss_rollback(qp, LOSS_ACTION_RETRANSMIT);
	else if (burst->kind == ENG_BURST_READ_RETRY)
		read_retry_rollback(qp);
	else if (burst->kind != ENG_BURST_REQUESTS)
		response_rollback(qp, burst);
	else if (can_request(qp))
		sq_rewind(qp, burst->first_psn);
	if (burst->has_ack)
		response_rollback(qp, burst);
	budget_publish(qp);
}

enum eng_resp_pending eng_resp_pending(const struct eng_qp *qp)
{
	return response_pending(qp);
}

void eng_send_final_acks(struct eng_qp *qp)
{
	struct responder *resp = &qp->resp;

	if (!is_reliable(qp) || !can_respond(qp) || !resp->established)
		return;
	resp->repeats = FINAL_ACKS;
	/* Also acknowledge packets without AckReq, as no ACK probe can be answered later. */
	if (psn_diff(resp->ack_psn, resp->credit_adv.last_positive_psn) > 0)
		resp->ack_pending = true;
}

uint32_t eng_in_flight(const struct eng_qp *qp)
{
	return sq_in_flight(qp);
}

bool eng_awaits_response(const struct eng_qp *qp, uint64_t now, uint64_t timeout_ns)
{
	return requester_is_done(qp) && sq_awaits_response(qp) &&
	       elapsed(qp->req.last_progress, now) < timeout_ns;
}

void eng_set_path_loss(struct eng_qp *qp, enum eng_path_loss loss)
{
	qp->path_loss = loss;
}

uint64_t eng_timer(const struct eng_qp *qp)
{
	return loss_deadline(qp);
}

uint64_t eng_deadline(const struct eng_qp *qp)
{
	uint64_t deadline = loss_deadline(qp), other = response_deadline(qp);

	if (other < deadline)
		deadline = other;
	other = tx_sched_deadline(qp);
	return other < deadline ? other : deadline;
}

bool eng_deadline_before(const struct eng_qp *qp, uint64_t time)
{
	uint64_t ack = qp->tx_sched.ack_due;

	/* Few packets change any of these fields, and computing the deadline reads many others. */
	if (qp->resp.resp_res_pending == 0 && (ack == 0 || ack >= time) &&
	    loss_deadline_least(qp) >= time)
		return false;
	return eng_deadline(qp) < time;
}

bool eng_times_out(const struct eng_qp *qp, uint64_t now)
{
	return loss_times_out(qp, now);
}

void eng_restore_retries(struct eng_qp *qp, uint64_t now)
{
	loss_restore_retries(qp, now);
}

bool eng_retries_nearly_spent(const struct eng_qp *qp)
{
	return retries_left(qp) <= qp->attr.retry_count / 2;
}

void eng_expire(struct eng_qp *qp, uint64_t now)
{
	enum eng_status verdict = loss_expire(qp, now);

	if (verdict != ENG_SUCCESS)
		qp_fail(qp, verdict);
}

uint64_t eng_timeouts(const struct eng_qp *qp)
{
	return qp->counters[ENG_COUNT_TIMEOUTS];
}

static uint32_t decode_or_zero(uint8_t code)
{
	return code == CREDIT_CODE_UNLIMITED ? 0 : credit_decode(code);
}

void eng_qp_query(const struct eng_qp *qp, struct eng_qp_info *view)
{
	const struct requester *req = &qp->req;
	const struct responder *resp = &qp->resp;

	memset(view, 0, sizeof(*view));
	view->type = qp->type;
	view->state = qp->state;
	view->qpn = qp->qpn;
	view->dest_qpn = qp->attr.dest_qpn;
	view->mtu = qp->attr.mtu;
	view->next_psn = req->next_psn;
	view->unacked_psn = req->unacked_psn;
	view->expected_psn = resp->expected_psn;
	view->ssn = req->posted_ssn;
	view->sent_ssn = req->begun_ssn;
	view->msn = resp->msn;
	view->lsn = req->credit.lsn;
	view->unlimited = req->credit.report == CREDIT_REPORT_UNLIMITED;
	view->credits_known = is_reliable(qp) && req->credit.report != CREDIT_REPORT_NONE;
	view->credits_last_known = decode_or_zero(req->credit.last_code);
	view->credits_advertised = decode_or_zero(resp->credit_adv.code);
	view->credits_now = qp->rq_shared ? 0 : credit_free(qp);
	view->sq_used = eng_ring_used(qp->sq);
	view->rq_used = qp->rq_shared ? 0 : eng_ring_used(qp->rq);
	view->outstanding_reads = req->reads_outstanding;
	view->in_message = resp->previous_opcode >= 0;
	view->in_flight = sq_in_flight(qp);
	view->cwnd = (uint32_t)(req->cwnd / WIRE_MAX_MTU);
	view->retries_left = retries_left(qp);
	view->rnr_retries_left = rnr_retries_left(qp);
	view->waiting = req->waiting;
	memcpy(view->counters, qp->counters, sizeof(view->counters));
}

uint32_t eng_current_srqn(const struct eng_qp *qp)
{
	return qp->resp.srqn;
}
