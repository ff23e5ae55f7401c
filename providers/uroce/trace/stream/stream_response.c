/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* The responder's packets: ACKs and NAKs, READ responses, Atomic Acknowledges. */
#include "trace/array.h"
#include "engine/base/aeth.h"
#include "stream_priv.h"
#include "wire/packet.h"

static void remove_outstanding_read(struct stream *stream, struct stream_message *message)
{
	if (message->is_open)
		stream->reads--;
	message->is_open = false;
}

/*
 * An ACK beyond a READ without response is an implied NAK (rule S8).  For a READ that was
 * retransmitted after an earlier one, only an ACK of a packet that was sent later is: others may
 * have been in flight.
 */
static void find_implied_naks(struct stream *stream, uint64_t position)
{
	for (size_t i = stream->oldest_read; i < stream->messages.count; i++) {
		struct stream_message *message = &stream->messages.items[i];

		if (message->is_open && message->end <= position &&
		    message->reopened_at < position) {
			stream->counts.implied_naks++;
			remove_outstanding_read(stream, message);
		}
		if (i == stream->oldest_read && !message->is_open)
			stream->oldest_read++;
		if (message->end > position)
			break;
	}
}

/* Marks all positions before this one as acknowledged. */
static void advance_unacked(struct stream *stream, uint64_t position)
{
	if (position <= stream->unacked)
		return;
	find_implied_naks(stream, position);
	stream->unacked = position;
}

static void measure_round_trip(struct stream *stream, const struct trace_packet *packet,
			       uint64_t position)
{
	const struct stream_sent *sent;
	uint64_t elapsed;

	if (!stream->sent)
		return;
	sent = &stream->sent[position % STREAM_SENT_SLOTS];
	/* After a retransmission it is unknown which packet the response is for. */
	if (sent->position != position || sent->retransmitted || packet->time_ns < sent->time_ns)
		return;
	elapsed = packet->time_ns - sent->time_ns;
	if (sent->ack_req && stream_is_late(stream, elapsed))
		stream_violation(stream, packet, RULE_ACK_LATE);
	*array_append(&stream->round_trips) = elapsed;
}

/* Handles an ACK that acknowledges nothing new. */
static void process_old_ack(struct stream *stream, const struct trace_packet *packet,
			    uint64_t position)
{
	bool changed = !stream->aeth_seen || stream->msn != packet->msn ||
		       stream->code != syndrome_code(packet->syndrome);

	if (position + 1 != stream->unacked) {
		stream->counts.stale_acks++;
		stream_add_event(stream, packet, position, STREAM_STALE);
		return;
	}
	/*
	 * An unsolicited ACK repeats the last one with other credits (rule C8).  Without a change
	 * it is the response to a duplicate, or repeated in case the last one was lost.
	 */
	if (!changed) {
		stream->counts.repeated_acks++;
		stream_add_event(stream, packet, position, STREAM_REPEATED);
		return;
	}
	credit_process(stream, packet, position, false);
	stream->counts.unsolicited_acks++;
	stream_add_event(stream, packet, position, STREAM_UNSOLICITED);
}

static void process_new_ack(struct stream *stream, const struct trace_packet *packet,
			    uint64_t position)
{
	if (position >= stream->next) {
		stream->counts.ghost_acks++;
		stream_add_event(stream, packet, position, STREAM_GHOST);
		return;
	}
	measure_round_trip(stream, packet, position);
	advance_unacked(stream, position + 1);
	credit_process(stream, packet, position, true);
	stream_add_event(stream, packet, position, STREAM_ACK);
}

/*
 * Handles a response before any request: initial credits (rule C9), a capture started during a
 * connection, or a capture without requests.  start_stream() distinguishes them at the first
 * request.
 */
static void process_initial_response(struct stream *stream, const struct trace_packet *packet)
{
	uint64_t position;

	if (wire_op_family(packet->opcode) != WIRE_FAMILY_ACK) {
		bool read = wire_op_family(packet->opcode) == WIRE_FAMILY_READ_RESPONSE;

		stream->counts.read_responses += read;
		stream->counts.atomic_responses += !read;
		stream->counts.orphan_responses++;
		return;
	}
	position = stream_position(stream, packet->psn);
	if (syndrome_kind(packet->syndrome) != AETH_ACK) {
		nak_process(stream, packet, position);
		return;
	}
	stream->counts.acks++;
	stream->initial_acks = stream->initial_acks && stream->initial_ack_psn == packet->psn
				       ? stream->initial_acks + 1
				       : 1;
	stream->initial_ack_psn = packet->psn;
	stream->initial_ack_msn = packet->msn;
	stream->next = stream->unacked = position + 1;
	credit_process(stream, packet, position, false);
	stream_add_event(stream, packet, position, STREAM_UNSOLICITED);
}

static void process_ack(struct stream *stream, const struct trace_packet *packet, uint64_t position)
{
	if (syndrome_kind(packet->syndrome) != AETH_ACK) {
		/* A NAK acknowledges all SENDs and WRITEs before it (rule S11). */
		if (position <= stream->next)
			advance_unacked(stream, position);
		nak_process(stream, packet, position);
		return;
	}
	stream->counts.acks++;
	if (position < stream->unacked)
		process_old_ack(stream, packet, position);
	else
		process_new_ack(stream, packet, position);
}

/* Records a READ or Atomic response; returns true if it has not been seen before. */
static bool mark_response(struct stream *stream, struct stream_message *message, uint64_t position)
{
	if (position < message->next_response)
		return range_set_remove(&stream->missing_responses, position);
	if (position > message->next_response)
		range_set_add(&stream->missing_responses, message->next_response, position);
	message->next_response = position + 1;
	return true;
}

static void process_new_response(struct stream *stream, const struct trace_packet *packet,
				 struct stream_message *message, uint64_t position)
{
	/* All responses before this position have been received. */
	uint64_t complete =
		range_set_first(&stream->missing_responses, message->first, message->next_response);

	if (position == message->first)
		measure_round_trip(stream, packet, position);
	if (complete == message->end)
		remove_outstanding_read(stream, message);
	if (wire_op_family(packet->opcode) == WIRE_FAMILY_READ_RESPONSE)
		stream->counts.read_bytes += packet->payload;
	advance_unacked(stream, complete);
}

static void process_response(struct stream *stream, const struct trace_packet *packet,
			     uint64_t position)
{
	struct stream_message *message = stream_find_message(stream, position);

	if (wire_op_family(packet->opcode) == WIRE_FAMILY_READ_RESPONSE)
		stream->counts.read_responses++;
	else
		stream->counts.atomic_responses++;
	if (!message || message->family == WIRE_FAMILY_SEND ||
	    message->family == WIRE_FAMILY_WRITE) {
		stream->counts.orphan_responses++;
		return;
	}
	if (wire_op_headers(packet->opcode) & WIRE_HAS_AETH &&
	    syndrome_kind(packet->syndrome) == AETH_ACK)
		credit_process(stream, packet, position, position >= stream->unacked);
	if (mark_response(stream, message, position))
		process_new_response(stream, packet, message, position);
	else
		stream->counts.repeated_responses++;
	stream_add_event(stream, packet, position, STREAM_RESPONSE);
}

void stream_response(struct stream *stream, const struct trace_packet *packet)
{
	uint64_t position;

	stream->end_ns = packet->time_ns;
	if (!stream->started) {
		process_initial_response(stream, packet);
		return;
	}
	position = stream_position(stream, packet->psn);
	if (wire_op_family(packet->opcode) == WIRE_FAMILY_ACK)
		process_ack(stream, packet, position);
	else
		process_response(stream, packet, position);
}
