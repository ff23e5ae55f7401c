/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "read_retry.h"

#include <assert.h>

#include "engine/base/aeth.h"
#include "engine/base/burst.h"
#include "engine/base/op.h"
#include "engine/base/sge.h"
#include "engine/cc/cwnd.h"
#include "engine/credit.h"
#include "engine/tx/pkt_hdr.h"
#include "engine/tx/sq.h"
#include "engine/tx/tx_build.h"
#include "rtt.h"

#define WORD_BITS 64

/* Returns the bitmap word that has the bit of psn. */
static uint64_t *word_of(struct read_retry *read_retry, uint32_t psn)
{
	return &read_retry->placed[psn % ENG_AHEAD_PACKETS / WORD_BITS];
}

static bool is_placed(const struct read_retry *read_retry, uint32_t psn)
{
	return read_retry->placed[psn % ENG_AHEAD_PACKETS / WORD_BITS] >> psn % WORD_BITS & 1;
}

static const struct eng_send_wqe *request_of(const struct eng_qp *qp, uint32_t psn)
{
	for (uint32_t at = qp->sq->tail; at != qp->req.begun; at++) {
		const struct eng_send_wqe *wqe = sq_at(qp, at);

		if (psn_in(psn, wqe->first_psn, wqe->packets))
			return wqe;
	}
	return NULL;
}

static uint32_t later(uint32_t a, uint32_t b)
{
	return psn_diff(a, b) > 0 ? a : b;
}

bool read_retry_may_end(const struct eng_qp *qp, uint32_t psn)
{
	return read_retry_is_active(qp) && psn_diff(psn, qp->req.read_retry.parts_psn) < 0;
}

static bool peer_reports_credits(const struct eng_qp *qp, const struct wire_packet *packet)
{
	if (wire_op_headers(packet->opcode) & WIRE_HAS_AETH)
		return syndrome_code(packet->syndrome) != CREDIT_CODE_UNLIMITED;
	return credit_is_reported(qp);
}

/* Returns the READ that an out-of-order response belongs to, or NULL if it must not be placed. */
static const struct eng_send_wqe *placing_request(const struct eng_qp *qp,
						  const struct wire_packet *packet)
{
	const struct requester *req = &qp->req;
	const struct eng_send_wqe *wqe = request_of(qp, packet->psn);
	enum wire_position position = wire_op_position(packet->opcode);
	uint32_t index;
	bool ends, last;

	if (qp->type != ENG_RC || !loss_has_probes(qp) || !peer_reports_credits(qp, packet))
		return NULL;
	if (!wqe || wqe->op != ENG_READ ||
	    !psn_in(packet->psn, req->unacked_psn, ENG_AHEAD_PACKETS))
		return NULL;
	index = wqe_packet_index(wqe, packet->psn);
	last = index == wqe->packets - 1;
	ends = position == WIRE_LAST || position == WIRE_ONLY;
	if (packet->payload_length != message_packet_length(wqe->length, qp->attr.mtu, index) ||
	    (ends != last && !(ends && read_retry_may_end(qp, packet->psn))))
		return NULL;
	return wqe;
}

/* Returns one past the last PSN whose READ, or other request, has been responded to in full. */
static uint32_t responded_psn(const struct eng_qp *qp)
{
	uint32_t psn = qp->req.unacked_psn;

	for (uint32_t at = qp->sq->tail; at != qp->req.begun; at++) {
		const struct eng_send_wqe *wqe = sq_at(qp, at);
		uint32_t end = psn_add(wqe->first_psn, wqe->packets);

		if (psn_diff(end, qp->req.read_retry.rx_max_psn) > 0 ||
		    (wqe->op != ENG_READ && op_is_read_or_atomic(wqe->op)))
			break;
		psn = end;
	}
	return psn;
}

/* Sets *from and *to to the first missing part of wqe within them; returns false if none is. */
static bool find_missing(const struct eng_qp *qp, const struct eng_send_wqe *wqe, uint32_t *from,
			 uint32_t *to)
{
	const struct read_retry *read_retry = &qp->req.read_retry;
	uint32_t end = psn_add(wqe->first_psn, wqe->packets);

	if (wqe->op != ENG_READ)
		return false;
	*from = later(*from, later(wqe->first_psn, qp->req.unacked_psn));
	if (psn_diff(*to, end) < 0)
		end = *to;
	while (psn_diff(*from, end) < 0 && is_placed(read_retry, *from))
		*from = psn_add(*from, 1);
	*to = *from;
	while (psn_diff(*to, end) < 0 && !is_placed(read_retry, *to))
		*to = psn_add(*to, 1);
	return *from != *to;
}

static bool is_missing(const struct eng_qp *qp, uint32_t from, uint32_t to)
{
	for (uint32_t at = qp->sq->tail; at != qp->req.begun; at++) {
		uint32_t first = from, end = to;

		if (find_missing(qp, sq_at(qp, at), &first, &end))
			return true;
	}
	return false;
}

/* Returns true if a part that was requested again has not arrived. */
static bool waits(const struct eng_qp *qp)
{
	return psn_diff(qp->req.read_retry.requested_psn, qp->req.unacked_psn) > 0;
}

static void request_parts(struct eng_qp *qp, uint32_t from, uint32_t to, uint64_t now)
{
	struct read_retry *read_retry = &qp->req.read_retry;

	if (qp->req.loss.action != LOSS_ACTION_READ_RETRY)
		read_retry->from_psn = from;
	read_retry->requested_psn = to;
	read_retry->parts_psn = later(to, read_retry->parts_psn);
	read_retry->behind_psn = qp->req.next_psn;
	read_retry->requested_at = now;
	loss_act(qp, LOSS_ACTION_READ_RETRY, now);
	count(qp, ENG_COUNT_FAST_RETRANSMITS);
}

/*
 * Returns true if a part requested again has not arrived for a probe timeout, although responses to
 * requests sent after it have.
 */
static bool is_overdue(const struct eng_qp *qp, uint64_t now)
{
	const struct read_retry *read_retry = &qp->req.read_retry;

	return waits(qp) && psn_diff(read_retry->rx_max_psn, read_retry->behind_psn) > 0 &&
	       elapsed(read_retry->requested_at, now) >= rtt_probe_timeout(&qp->req.rtt);
}

static void find_missing_responses(struct eng_qp *qp, uint64_t now)
{
	struct requester *req = &qp->req;
	struct read_retry *read_retry = &req->read_retry;
	uint32_t to = responded_psn(qp), from = later(read_retry->requested_psn, req->unacked_psn);

	/* After going back, the READs are sent again in order anyway. */
	if (req->loss.state == LOSS_RNR_WAIT || psn_diff(req->next_psn, to) < 0)
		return;
	if (is_overdue(qp, now))
		from = req->unacked_psn;
	else if (psn_diff(from, to) >= 0 || !is_missing(qp, from, to))
		return;
	cwnd_first_loss(qp);
	request_parts(qp, from, later(to, read_retry->requested_psn), now);
}

bool read_retry_place(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now)
{
	struct requester *req = &qp->req;
	struct read_retry *read_retry = &req->read_retry;
	uint32_t psn = packet->psn, behind = psn_add(psn, 1);
	const struct eng_send_wqe *wqe = placing_request(qp, packet);

	if (!wqe)
		return false;
	if (!is_placed(read_retry, psn)) {
		if (!sge_scatter(qp, wqe->data.sge, wqe->sge_count,
				 wqe_packet_index(wqe, psn) * qp->attr.mtu, packet->payload,
				 packet->payload_length))
			return false;
		*word_of(read_retry, psn) |= UINT64_C(1) << psn % WORD_BITS;
		if (read_retry->count == 0) {
			read_retry->requested_psn = req->unacked_psn;
			read_retry->parts_psn = req->unacked_psn;
			read_retry->rx_max_psn = behind;
			read_retry->placed_max_psn = behind;
		}
		read_retry->count++;
		req->last_progress = now;
		loss_reported(qp, now);
		count(qp, ENG_COUNT_OOO_READ_RESPS);
	} else {
		count(qp, ENG_COUNT_DROPPED);
	}
	read_retry->rx_max_psn = later(behind, read_retry->rx_max_psn);
	read_retry->placed_max_psn = later(behind, read_retry->placed_max_psn);
	find_missing_responses(qp, now);
	return true;
}

bool read_retry_is_read(const struct eng_qp *qp, uint32_t psn)
{
	const struct eng_send_wqe *wqe = request_of(qp, psn);

	return wqe && wqe->op == ENG_READ;
}

bool read_retry_implied_nak(struct eng_qp *qp, uint32_t psn, uint64_t now)
{
	struct read_retry *read_retry = &qp->req.read_retry;

	/* The bitmap wraps: a PSN beyond it would share the bit of a nearer one. */
	if (!read_retry_is_active(qp) || !psn_in(psn, qp->req.unacked_psn, ENG_AHEAD_PACKETS))
		return false;
	read_retry->rx_max_psn = later(psn_add(psn, 1), read_retry->rx_max_psn);
	read_retry->placed_max_psn = later(psn_add(psn, 1), read_retry->placed_max_psn);
	find_missing_responses(qp, now);
	return true;
}

uint32_t read_retry_consume(struct eng_qp *qp, uint32_t n)
{
	struct read_retry *read_retry = &qp->req.read_retry;
	uint32_t taken = 0, psn = qp->req.unacked_psn;

	while (taken < n && read_retry->count > 0 && is_placed(read_retry, psn)) {
		*word_of(read_retry, psn) &= ~(UINT64_C(1) << psn % WORD_BITS);
		read_retry->count--;
		taken++;
		psn = psn_add(psn, 1);
	}
	/* The missing responses have arrived before they could be requested again. */
	if (read_retry->count == 0 && qp->req.loss.action == LOSS_ACTION_READ_RETRY)
		qp->req.loss.action = LOSS_ACTION_NONE;
	return taken;
}

bool read_retry_timeout(struct eng_qp *qp, uint64_t now)
{
	const struct requester *req = &qp->req;

	assert(req->loss.state != LOSS_RNR_WAIT);
	if (!read_retry_is_active(qp) ||
	    psn_diff(req->next_psn, req->read_retry.requested_psn) < 0 ||
	    !is_missing(qp, req->unacked_psn, req->read_retry.requested_psn))
		return false;
	request_parts(qp, req->unacked_psn, req->read_retry.requested_psn, now);
	return true;
}

static enum tx_build_result add_request(struct eng_qp *qp, struct eng_burst *burst,
					const struct eng_send_wqe *wqe, uint32_t from, uint32_t to)
{
	uint8_t *at = tx_build_reserve(burst, 0);

	if (!at)
		return TX_BUILD_NO_ROOM;
	return tx_build_add_header_only(
		burst,
		message_read_part(qp, wqe, wqe_packet_index(wqe, from), psn_sub(to, from), at));
}

/*
 * Returns true if the peer is a uroce, which keeps several parts of a READ.  Other responders have
 * resources for max_rd_atomic requests (rule S12) and possibly none for a further one.
 */
static bool peer_accepts_parts(const struct eng_qp *qp)
{
	return qp->req.retransmit.peer == PEER_KEEPS || qp->resp.ooo.peer_supports;
}

/* Returns the end of the last missing part of wqe; an earlier part ends at psn. */
static uint32_t end_of_parts(const struct eng_qp *qp, const struct eng_send_wqe *wqe, uint32_t psn)
{
	uint32_t from = psn, to = qp->req.read_retry.requested_psn;

	for (; find_missing(qp, wqe, &from, &to); from = to, to = qp->req.read_retry.requested_psn)
		psn = to;
	return psn;
}

/* Requests all missing parts of wqe; returns false if the next burst must continue at from_psn. */
static bool add_parts(struct eng_qp *qp, struct eng_burst *burst, const struct eng_send_wqe *wqe)
{
	struct read_retry *read_retry = &qp->req.read_retry;
	uint32_t from = read_retry->from_psn, to = read_retry->requested_psn;

	for (; find_missing(qp, wqe, &from, &to); from = to, to = read_retry->requested_psn) {
		if (!peer_accepts_parts(qp))
			to = end_of_parts(qp, wqe, to);
		if (burst->packets == 0)
			burst->first_psn = from;
		if (burst->closed || burst->packets == burst->max_packets ||
		    add_request(qp, burst, wqe, from, to) != TX_BUILD_OK) {
			read_retry->from_psn = from;
			return false;
		}
	}
	return true;
}

enum eng_tx read_retry_transmit(struct eng_qp *qp, struct eng_burst *burst)
{
	struct requester *req = &qp->req;
	struct read_retry *read_retry = &req->read_retry;
	bool all = true;

	burst->kind = ENG_BURST_READ_RETRY;
	for (uint32_t at = qp->sq->tail; all && at != req->begun; at++)
		all = add_parts(qp, burst, sq_at(qp, at));
	read_retry->sent_from_psn = burst->first_psn;
	if (!all)
		return ENG_TX_BURST;
	req->loss.action = LOSS_ACTION_NONE;
	return burst->packets > 0 ? ENG_TX_BURST : ENG_TX_IDLE;
}

void read_retry_rollback(struct eng_qp *qp)
{
	qp->req.read_retry.from_psn = qp->req.read_retry.sent_from_psn;
	qp->req.loss.action = read_retry_is_active(qp) ? LOSS_ACTION_READ_RETRY : LOSS_ACTION_NONE;
}

void read_retry_check(const struct read_retry *read_retry)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < ENG_AHEAD_PACKETS / WORD_BITS; i++)
		count += (uint32_t)__builtin_popcountll(read_retry->placed[i]);
	assert(count == read_retry->count);
}
