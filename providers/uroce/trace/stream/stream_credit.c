/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Evaluation of AETHs: MSN and credits, hence SSNs of messages and LSN (rules C2-C12). */
#include "engine/base/aeth.h"
#include "stream_priv.h"
#include "wire/opcode.h"

void credit_count_uncredited(struct stream *stream, struct stream_message *message)
{
	stream->uncredited++;
	message->uncredited = stream->uncredited;
	if (stream->lsn_known)
		stream->lsn = psn_add(stream->lsn, 1); /* rule C12 */
}

/*
 * Updates ssn_base, which maps messages to SSNs: the MSN counts all messages that end at or before
 * the acknowledged position.  The responder may have completed more before it sent this MSN, so the
 * first estimate may be too high; an MSN that contradicts an estimate corrects it.  If the start of
 * the connection was captured ssn_base is exact, and such an MSN violates rule C11.
 */
static void update_ssn_base(struct stream *stream, const struct trace_packet *packet,
			    uint64_t position)
{
	const struct stream_message *message = stream_find_message(stream, position);
	uint32_t complete, newest;
	size_t index;

	if (!message)
		return;
	index = (size_t)(message - stream->messages.items);
	if (index < stream->ssn_base_from)
		return;
	/*
	 * Number of messages of the capture that are complete once this position is acknowledged.
	 */
	complete = (uint32_t)(position + 1 == message->end ? index + 1 : index);
	/* The newest message is not complete if more packets of it may follow. */
	if (position + 1 == stream->next && stream->opcode >= 0)
		complete = (uint32_t)index;
	/* The MSN counts a READ once it is executed, before its first response is sent. */
	if (message->family == WIRE_FAMILY_READ)
		complete = (uint32_t)index + 1;
	if (!stream->ssn_base_known) {
		stream->ssn_base = psn_sub(packet->msn, complete & PSN_MASK);
		stream->ssn_base_known = true;
		return;
	}
	newest = psn_add(stream->ssn_base, (uint32_t)stream->messages.count & PSN_MASK);
	if (psn_diff(packet->msn, psn_add(stream->ssn_base, complete & PSN_MASK)) >= 0 &&
	    psn_diff(packet->msn, newest) <= 0)
		return;
	if (stream->ssn_base_exact)
		stream_violation(stream, packet, RULE_MSN);
	else
		stream->ssn_base = psn_sub(packet->msn, complete & PSN_MASK);
}

/*
 * Handles an ACK of the PSN before the first request (rule C9) that is captured after requests: its
 * MSN sets ssn_base.  If it is the first response and its MSN is 0, the requester had no credits
 * when it sent these requests: counts those that need a receive WQE as limited (rules C5 and C13).
 */
static void update_ssn_base_initial(struct stream *stream, const struct trace_packet *packet,
				    uint64_t position)
{
	if (stream->ssn_base_known || stream->ssn_base_from > 0 || position + 1 != stream->first ||
	    stream->messages.count == 0 || stream->messages.items[0].starts_before_capture)
		return;
	stream->ssn_base = packet->msn;
	stream->ssn_base_known = true;
	if (packet->msn != 0 || stream->aeth_seen)
		return;
	for (size_t i = 0; i < stream->messages.count; i++)
		stream->counts.limited += stream->messages.items[i].needs_receive;
}

/* Returns the number of uncredited messages after MSN (rule C12). */
static uint32_t uncredited_after(const struct stream *stream, uint32_t msn)
{
	int64_t complete = psn_diff(msn, stream->ssn_base);

	if (complete <= 0)
		return stream->uncredited;
	if ((uint64_t)complete > stream->messages.count)
		return 0;
	return stream->uncredited - stream->messages.items[complete - 1].uncredited;
}

static void update_lsn(struct stream *stream, const struct trace_packet *packet)
{
	uint32_t lsn;

	if (stream->started && !stream->ssn_base_known)
		return;
	lsn = psn_add(packet->msn,
		      credit_decode(stream->code) +
			      (stream->started ? uncredited_after(stream, packet->msn) : 0));
	/* LSN never decreases (rules C12, U3). */
	if (!stream->lsn_known || psn_diff(lsn, stream->lsn) > 0)
		stream->lsn = lsn;
	stream->lsn_known = true;
}

void credit_process(struct stream *stream, const struct trace_packet *packet, uint64_t position,
		    bool is_new)
{
	uint8_t code = syndrome_code(packet->syndrome);

	if (is_new && stream->started)
		update_ssn_base(stream, packet, position);
	else if (stream->started)
		update_ssn_base_initial(stream, packet, position);
	/* Either all responses of a QP report credits or none does (rules C2, C7). */
	if (stream->aeth_seen && stream->unlimited != (code == CREDIT_CODE_UNLIMITED))
		stream_violation(stream, packet, RULE_CREDITS_MIXED);
	stream->aeth_seen = true;
	stream->code = code;
	stream->msn = packet->msn;
	stream->unlimited = code == CREDIT_CODE_UNLIMITED;
	if (!stream->unlimited) {
		stream->credits_seen = true;
		if (code < stream->lowest)
			stream->lowest = code;
		if (code > stream->highest)
			stream->highest = code;
		update_lsn(stream, packet);
	}
	stream_update_limit(stream, packet->time_ns);
}
