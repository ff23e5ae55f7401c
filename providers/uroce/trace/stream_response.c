/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* The responder's packets: ACKs and NAKs, READ responses, Atomic Acknowledges. */
#include "array.h"
#include "engine/base/aeth.h"
#include "stream_internal.h"
#include "wire/packet.h"

/* Returns the oldest READ or Atomic without a complete response, or NULL. */
static struct stream_message *oldest_read(struct stream *stream)
{
	while (stream->oldest_read < stream->messages.count) {
		struct stream_message *message = &stream->messages.items[stream->oldest_read];

		if (message->is_open)
			return message;
		/* If an older one is requested again it is found by its PSN. */
		stream->oldest_read++;
	}
	return NULL;
}

static void close_read(struct stream *stream, struct stream_message *message)
{
	if (message->is_open)
		stream->reads--;
	message->is_open = false;
}

/* Marks all positions before this one as acknowledged. */
static void acknowledge(struct stream *stream, uint64_t position)
{
	struct stream_message *read;

	if (position <= stream->unacked)
		return;
	/* An ACK beyond a READ without response is an implied NAK (rule S8). */
	while ((read = oldest_read(stream)) && read->end <= position) {
		stream->counts.implied_naks++;
		close_read(stream, read);
	}
	stream->unacked = position;
}

static void measure(struct stream *stream, const struct trace_packet *packet, uint64_t position)
{
	const struct stream_sent *sent;
	uint64_t took;

	if (!stream->sent)
		return;
	sent = &stream->sent[position % STREAM_SENT_SLOTS];
	/* After a retransmission it is unknown which packet the response is for. */
	if (sent->position != position || sent->again || packet->time_ns < sent->time_ns)
		return;
	took = packet->time_ns - sent->time_ns;
	if (sent->asked && stream_is_late(stream, took))
		stream_violation(stream, packet, RULE_ACK_LATE);
	*array_append(&stream->round_trips) = took;
}

/* Handles an ACK that acknowledges nothing new. */
static void old_ack(struct stream *stream, const struct trace_packet *packet, uint64_t position)
{
	bool news = !stream->heard || stream->msn != packet->msn ||
		    stream->code != syndrome_code(packet->syndrome);

	if (position + 1 != stream->unacked) {
		stream->counts.stale_acks++;
		stream_note(stream, packet, position, STREAM_STALE);
		return;
	}
	/*
	 * An unsolicited ACK repeats the last one with other credits (rule C8).  Without a change
	 * it is the response to a duplicate, or repeated in case the last one was lost.
	 */
	if (!news) {
		stream->counts.repeated_acks++;
		stream_note(stream, packet, position, STREAM_REPEATED);
		return;
	}
	credit_arrived(stream, packet, position, false);
	stream->counts.unsolicited_acks++;
	stream_note(stream, packet, position, STREAM_UNSOLICITED);
}

static void new_ack(struct stream *stream, const struct trace_packet *packet, uint64_t position)
{
	if (position >= stream->next) {
		stream->counts.ghost_acks++;
		stream_note(stream, packet, position, STREAM_GHOST);
		return;
	}
	measure(stream, packet, position);
	acknowledge(stream, position + 1);
	credit_arrived(stream, packet, position, true);
	stream_note(stream, packet, position, STREAM_ACK);
}

/*
 * Handles a response before any request: initial credits (rule C9), a capture started during a
 * connection, or one of this direction only.  Which of these it is shows later.
 */
static void early_response(struct stream *stream, const struct trace_packet *packet)
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
		nak_arrived(stream, packet, position);
		return;
	}
	stream->counts.acks++;
	stream->ghosts =
		stream->ghosts && stream->ghost_psn == packet->psn ? stream->ghosts + 1 : 1;
	stream->ghost_psn = packet->psn;
	stream->ghost_msn = packet->msn;
	stream->next = stream->unacked = position + 1;
	credit_arrived(stream, packet, position, false);
	stream_note(stream, packet, position, STREAM_UNSOLICITED);
}

static void ack_packet(struct stream *stream, const struct trace_packet *packet, uint64_t position)
{
	if (syndrome_kind(packet->syndrome) != AETH_ACK) {
		/* A NAK acknowledges all SENDs and WRITEs before it (rule S11). */
		if (position <= stream->next)
			acknowledge(stream, position);
		nak_arrived(stream, packet, position);
		return;
	}
	stream->counts.acks++;
	if (position < stream->unacked)
		old_ack(stream, packet, position);
	else
		new_ack(stream, packet, position);
}

/* Returns true if this response has not been seen before. */
static bool answer_is_new(struct stream *stream, struct stream_message *message, uint64_t position)
{
	if (position < message->answered)
		return spans_take(&stream->unanswered, position);
	if (position > message->answered)
		spans_add(&stream->unanswered, message->answered, position);
	message->answered = position + 1;
	return true;
}

static void answer_new(struct stream *stream, const struct trace_packet *packet,
		       struct stream_message *message, uint64_t position)
{
	/* All responses before this position have been received. */
	uint64_t complete = spans_first(&stream->unanswered, message->first, message->answered);

	if (position == message->first)
		measure(stream, packet, position);
	if (complete == message->end)
		close_read(stream, message);
	if (wire_op_family(packet->opcode) == WIRE_FAMILY_READ_RESPONSE)
		stream->counts.read_bytes += packet->payload;
	acknowledge(stream, complete);
}

static void answer(struct stream *stream, const struct trace_packet *packet, uint64_t position)
{
	struct stream_message *message = stream_find(stream, position);

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
		credit_arrived(stream, packet, position, position >= stream->unacked);
	if (answer_is_new(stream, message, position))
		answer_new(stream, packet, message, position);
	else
		stream->counts.repeated_responses++;
	stream_note(stream, packet, position, STREAM_RESPONSE);
}

void stream_response(struct stream *stream, const struct trace_packet *packet)
{
	uint64_t position;

	stream->end_ns = packet->time_ns;
	if (!stream->started) {
		early_response(stream, packet);
		return;
	}
	position = stream_position(stream, packet->psn);
	if (wire_op_family(packet->opcode) == WIRE_FAMILY_ACK)
		ack_packet(stream, packet, position);
	else
		answer(stream, packet, position);
}
