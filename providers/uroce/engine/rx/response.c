/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "responder.h"

#include <string.h>

#include "engine/base/aeth.h"
#include "engine/cc/ecn.h"
#include "engine/credit.h"
#include "engine/tx/pkt_hdr.h"
#include "engine/tx/tx_build.h"
#include "resp_res.h"

static enum tx_build_result add(struct eng_qp *qp, struct eng_burst *burst,
				const struct message_response *fields,
				const struct payload *payload)
{
	uint8_t *at = tx_build_reserve(burst, fields->payload_length);

	return at ? tx_build_add(qp, burst, message_response(qp, fields, at), payload)
		  : TX_BUILD_NO_ROOM;
}

static enum tx_build_result add_aeth(struct eng_qp *qp, struct eng_burst *burst, uint32_t psn,
				     uint8_t syndrome, uint32_t becn)
{
	uint8_t *at = tx_build_reserve(burst, 0);

	return at ? tx_build_add_header_only(burst, message_aeth(qp, psn, syndrome, becn, at))
		  : TX_BUILD_NO_ROOM;
}

/* Adds an ACK or NAK, which always fits because it is the first packet of the burst. */
static enum eng_tx send_aeth(struct eng_qp *qp, struct eng_burst *burst, uint32_t psn,
			     uint8_t syndrome, uint32_t becn)
{
	burst->first_psn = psn;
	return add_aeth(qp, burst, psn, syndrome, becn) == TX_BUILD_OK ? ENG_TX_BURST : ENG_TX_IDLE;
}

/*
 * Returns BECN or 0, and sets *syndrome, for an ACK of all PSNs up to psn, which then count as
 * acknowledged.
 */
static uint32_t advertise(struct eng_qp *qp, uint32_t psn, uint8_t *syndrome)
{
	uint32_t becn = ecn_echo(qp, psn);

	*syndrome = credit_advertise(qp, psn);
	return becn;
}

static enum eng_tx send_ack(struct eng_qp *qp, struct eng_burst *burst)
{
	uint8_t syndrome;
	uint32_t becn = advertise(qp, qp->resp.ack_psn, &syndrome);

	burst->kind = ENG_BURST_ACK;
	qp->resp.ack_pending = false;
	return send_aeth(qp, burst, qp->resp.ack_psn, syndrome, becn);
}

inline void response_piggyback_ack(struct eng_qp *qp, struct eng_burst *burst)
{
	struct responder *resp = &qp->resp;
	const struct credit_adv before = resp->credit_adv;
	uint8_t syndrome;
	uint32_t becn = advertise(qp, resp->ack_psn, &syndrome);

	if (add_aeth(qp, burst, resp->ack_psn, syndrome, becn) != TX_BUILD_OK) {
		resp->credit_adv = before;
		return;
	}
	resp->credit_adv_before = before;
	resp->ack_pending = false;
	burst->has_ack = true;
}

/* rules C8 to C10: repeats the last positive response as an ACK with the current credits. */
static enum eng_tx send_unsolicited(struct eng_qp *qp, struct eng_burst *burst)
{
	uint32_t psn = qp->resp.credit_adv.last_positive_psn;

	burst->kind = ENG_BURST_UNSOLICITED_ACK;
	if (qp->resp.repeats > 0)
		qp->resp.repeats--;
	count(qp, ENG_COUNT_UNSOLICITED_ACKS_SENT);
	return send_aeth(qp, burst, psn, credit_advertise(qp, psn), 0);
}

static bool is_rnr_nak(const struct responder *resp)
{
	return syndrome_kind(resp->nak_syndrome) == AETH_RNR_NAK;
}

static enum eng_tx send_nak(struct eng_qp *qp, struct eng_burst *burst)
{
	uint32_t psn = qp->resp.nak_psn;
	uint8_t syndrome = qp->resp.nak_syndrome;

	burst->kind = ENG_BURST_NAK;
	/* rule S11: the NAK acknowledges all earlier packets. */
	qp->resp.ack_pending = false;
	qp->resp.nak = NAK_STATE_SENT;
	if (syndrome_kind(syndrome) == AETH_ACK) {
		/* The ACK is needless if READ responses sent before have acknowledged the PSN. */
		if (psn_diff(psn, qp->resp.credit_adv.last_positive_psn) <= 0)
			return ENG_TX_STATE;
		syndrome = credit_advertise(qp, psn);
	} else {
		/* rule C8: so the next unsolicited ACK has the PSN before the NAK. */
		credit_acknowledged(qp, psn_sub(psn, 1));
	}
	if (is_rnr_nak(&qp->resp))
		count(qp, ENG_COUNT_SENT_RNR);
	return send_aeth(qp, burst, psn, syndrome, 0);
}

/* Adds one packet of a response, with credits if it has an AETH, unless the burst is full. */
static enum tx_build_result add_response(struct eng_qp *qp, struct eng_burst *burst,
					 struct message_response *fields,
					 const struct payload *payload)
{
	struct credit_adv before = qp->resp.credit_adv;
	enum tx_build_result result;

	if (fields->operation != WIRE_READ_RESPONSE_MIDDLE)
		fields->syndrome = credit_advertise(qp, fields->psn);
	else
		credit_acknowledged(qp, fields->psn);
	if (qp->resp.credit_adv.last_positive_psn == fields->psn)
		qp->resp.credit_adv.by_response = true;
	result = add(qp, burst, fields, payload);
	if (result != TX_BUILD_OK)
		qp->resp.credit_adv = before;
	return result;
}

static enum tx_build_result add_atomic(struct eng_qp *qp, struct eng_burst *burst,
				       struct resp_res *entry)
{
	static const struct payload none = { .kind = PAYLOAD_NONE };
	struct message_response fields = { .operation = WIRE_ATOMIC_ACKNOWLEDGE,
					   .psn = entry->psn,
					   .original = entry->original };
	enum tx_build_result result = add_response(qp, burst, &fields, &none);

	if (result == TX_BUILD_OK)
		resp_res_sent(qp, entry, entry->end);
	return result;
}

static uint8_t read_operation(const struct resp_res *entry)
{
	bool first = resp_res_begins_part(entry), last = resp_res_ends_part(entry);

	if (first)
		return last ? WIRE_READ_RESPONSE_ONLY : WIRE_READ_RESPONSE_FIRST;
	return last ? WIRE_READ_RESPONSE_LAST : WIRE_READ_RESPONSE_MIDDLE;
}

/*
 * Maps the memory of the next response packet.  XRC: with the rights of the queue that the READ
 * named, even while a message for another queue is being received.
 */
static const void *map_read(struct eng_qp *qp, const struct resp_res *entry, uint32_t length)
{
	const uint32_t srqn = qp->resp.srqn;
	const void *bytes;

	qp->resp.srqn = entry->srqn;
	bytes = qp->ops->map_remote(qp->owner, entry->rkey,
				    entry->va + (uint64_t)entry->next * qp->attr.mtu, length,
				    ENG_REMOTE_READ);
	qp->resp.srqn = srqn;
	return bytes;
}

static enum tx_build_result add_read_packet(struct eng_qp *qp, struct eng_burst *burst,
					    struct resp_res *entry)
{
	struct message_response fields = {
		.operation = read_operation(entry),
		.psn = psn_add(entry->psn, entry->next),
		.payload_length = message_packet_length(entry->until, qp->attr.mtu, entry->next),
	};
	/*
	 * Other threads may write to memory while it is read: copy it, so that the ICRC fits the
	 * data.
	 */
	struct payload payload = { .kind = PAYLOAD_BYTES,
				   .length = fields.payload_length,
				   .stable = false };
	enum tx_build_result result;

	if (!tx_build_fits(burst, tx_build_bytes(wire_op_header_length(message_services[qp->type] |
								       fields.operation),
						 payload.length)))
		return TX_BUILD_NO_ROOM;
	if (payload.length > 0) {
		payload.bytes = map_read(qp, entry, payload.length);
		if (!payload.bytes)
			return TX_BUILD_ERROR;
	}
	result = add_response(qp, burst, &fields, &payload);
	if (result == TX_BUILD_OK)
		resp_res_sent(qp, entry, entry->next + 1);
	return result;
}

static enum tx_build_result add_read(struct eng_qp *qp, struct eng_burst *burst,
				     struct resp_res *entry)
{
	/* No limit for shared memory, where a full ring makes its writer wait. */
	int64_t allowance =
		qp->path_loss == ENG_PATH_LOSSLESS ? INT64_MAX : pacing_allowance(&qp->resp.pacing);
	uint32_t bytes_before = burst->bytes;
	enum tx_build_result result = TX_BUILD_OK;

	while (result == TX_BUILD_OK && entry->next != entry->end &&
	       (int64_t)(burst->bytes - bytes_before) <= allowance)
		result = add_read_packet(qp, burst, entry);
	if (qp->path_loss != ENG_PATH_LOSSLESS)
		pacing_spent(&qp->resp.pacing, burst->bytes - bytes_before);
	if (entry->next == entry->end && !entry->again)
		pacing_read_done(&qp->resp.pacing);
	return result;
}

/* Number of bytes of the response that have not been sent. */
static uint64_t bytes_left(const struct eng_qp *qp, const struct resp_res *entry)
{
	return entry->until - (uint64_t)entry->next * qp->attr.mtu;
}

static bool pace_allows(struct eng_qp *qp, const struct resp_res *entry, uint64_t now)
{
	return entry->kind == RESP_RES_ATOMIC || qp->path_loss == ENG_PATH_LOSSLESS ||
	       pacing_open(&qp->resp.pacing, bytes_left(qp, entry), now);
}

/*
 * The responses of a READ have been sent, and a duplicate finds the region deregistered.  The
 * requester may have received them and asked its peer to deregister the region, and this is a late
 * duplicate; otherwise it must learn that no response will come.  So the NAK is sent, but the QP
 * does not enter ERR.
 */
static enum eng_tx refuse_again(struct eng_qp *qp, struct eng_burst *burst, struct resp_res *entry)
{
	resp_res_sent(qp, entry, entry->end);
	return send_aeth(qp, burst, burst->first_psn,
			 request_error_rows[REQUEST_REMOTE_ACCESS].syndrome, 0);
}

/*
 * The region was deregistered after the request was checked; engine.c moves the QP to ERR and
 * transmits again.
 */
static enum eng_tx refuse(struct eng_qp *qp, struct eng_burst *burst, struct resp_res *entry)
{
	if (entry->again)
		return refuse_again(qp, burst, entry);
	/* Later requests get no response. */
	resp_res_cancel(qp);
	responder_error(qp, REQUEST_REMOTE_ACCESS, burst->first_psn);
	return ENG_TX_RESP_ERROR;
}

/*
 * Responses are sent in PSN order.  A READ whose responses have begun is not interrupted: an ACK
 * acknowledges all requests before it, and Linux's rxe (since 6.2) drops responses after such an
 * ACK and completes the READ.
 */
static bool ack_goes_first(const struct eng_qp *qp, const struct resp_res *entry)
{
	return qp->resp.ack_pending && entry->next == entry->from &&
	       psn_diff(qp->resp.ack_psn, entry->psn) < 0;
}

/*
 * Adds as many responses as fit into one burst: the last packet of a READ may be as long as the
 * first of the next one, and many short responses are sent in one call.
 */
static enum eng_tx send_read_atomic_responses(struct eng_qp *qp, struct eng_burst *burst,
					      struct resp_res *entry, uint64_t now)
{
	enum tx_build_result result = TX_BUILD_OK;

	burst->kind = ENG_BURST_READ_ATOMIC_RESP;
	burst->first_psn = psn_add(entry->psn, entry->next);
	resp_res_begin_burst(qp);
	while (entry && !ack_goes_first(qp, entry) && pace_allows(qp, entry, now)) {
		result = entry->kind == RESP_RES_ATOMIC ? add_atomic(qp, burst, entry)
							: add_read(qp, burst, entry);
		if (result != TX_BUILD_OK)
			break;
		entry = resp_res_pending(qp);
	}
	/* Whatever ended this burst, including an error, is handled by the next call. */
	if (burst->packets > 0)
		return ENG_TX_BURST;
	return result == TX_BUILD_ERROR ? refuse(qp, burst, entry) : ENG_TX_PACING;
}

static bool repeats_ack(const struct eng_qp *qp)
{
	return (qp->resp.repeats > 0 && credit_may_resend_ack(qp)) || credit_update_pending(qp);
}

enum eng_tx response_transmit(struct eng_qp *qp, struct eng_burst *burst, uint64_t now)
{
	struct responder *resp = &qp->resp;
	struct resp_res *entry = NULL;

	/* Responses to earlier requests are sent after an error, too. */
	if (can_respond(qp) || resp->nak == NAK_STATE_PENDING)
		entry = resp_res_pending(qp);
	tx_build_begin(burst, &qp->attr.path);
	resp->credit_adv_before = resp->credit_adv;
	resp->repeats_before = resp->repeats;
	if (entry && ack_goes_first(qp, entry))
		return send_ack(qp, burst);
	if (entry)
		return send_read_atomic_responses(qp, burst, entry, now);
	if (resp->nak == NAK_STATE_PENDING)
		return send_nak(qp, burst);
	if (!can_respond(qp))
		return ENG_TX_STATE;
	if (resp->ack_pending)
		return send_ack(qp, burst);
	if (repeats_ack(qp))
		return send_unsolicited(qp, burst);
	return ENG_TX_IDLE;
}

void response_rollback(struct eng_qp *qp, const struct eng_burst *burst)
{
	/* The peer has not received the burst, so its credits do not count as reported. */
	qp->resp.credit_adv = qp->resp.credit_adv_before;
	switch (burst->kind) {
	case ENG_BURST_ACK:
		qp->resp.ack_pending = true;
		break;
	case ENG_BURST_NAK:
		qp->resp.nak = NAK_STATE_PENDING;
		if (is_rnr_nak(&qp->resp))
			qp->counters[ENG_COUNT_SENT_RNR]--;
		break;
	case ENG_BURST_READ_ATOMIC_RESP:
		resp_res_rollback(qp);
		break;
	case ENG_BURST_REQUESTS:
		qp->resp.ack_pending |= burst->has_ack;
		break;
	case ENG_BURST_UNSOLICITED_ACK:
		qp->resp.repeats = qp->resp.repeats_before;
		qp->counters[ENG_COUNT_UNSOLICITED_ACKS_SENT]--;
		break;
	case ENG_BURST_ACK_PROBE:
	case ENG_BURST_CNP:
	case ENG_BURST_RETRANSMIT:
	case ENG_BURST_READ_RETRY:
		break;
	}
}

uint64_t response_deadline(const struct eng_qp *qp)
{
	const struct resp_res *entry = resp_res_peek(qp);

	if (!entry || entry->kind == RESP_RES_ATOMIC || qp->path_loss == ENG_PATH_LOSSLESS)
		return ENG_NEVER;
	return pacing_deadline(&qp->resp.pacing, bytes_left(qp, entry));
}

enum eng_resp_pending response_pending(const struct eng_qp *qp)
{
	const struct responder *resp = &qp->resp;

	if (resp->nak == NAK_STATE_PENDING)
		return ENG_RESP_IMMEDIATE;
	if (!can_respond(qp))
		return ENG_RESP_NONE;
	if (resp->resp_res_pending > 0)
		return ENG_RESP_IMMEDIATE;
	if (resp->ack_pending)
		return ENG_RESP_DELAYABLE;
	return repeats_ack(qp) ? ENG_RESP_IMMEDIATE : ENG_RESP_NONE;
}
