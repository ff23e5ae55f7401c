/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* The requester's packets: new, retransmitted and missing ones. */
#include "array.h"
#include "stream_internal.h"
#include "wire/packet.h"

/* Returns true if a request completes with its response, not by an ACK. */
static bool has_response(enum wire_family family)
{
	return family == WIRE_FAMILY_READ || family == WIRE_FAMILY_ATOMIC ||
	       family == WIRE_FAMILY_FLUSH;
}

static bool has_immediate(uint8_t opcode)
{
	return wire_op_headers(opcode) & WIRE_HAS_IMMDT;
}

static void count_message(struct stream_counts *counts, const struct trace_packet *packet)
{
	enum wire_family family = wire_op_family(packet->opcode);

	counts->messages++;
	if (family == WIRE_FAMILY_SEND)
		counts->sends++;
	else if (family == WIRE_FAMILY_WRITE)
		counts->writes++;
	else if (family == WIRE_FAMILY_READ)
		counts->reads++;
	else if (family == WIRE_FAMILY_ATOMIC)
		counts->atomics++;
	else
		counts->others++;
}

/* Number of PSNs of a READ: the number of its responses, at the path MTU (rule S2). */
static uint64_t read_packets(const struct stream *stream, uint32_t length)
{
	if (length == 0 || stream->facts.mtu == 0)
		return 1;
	return (length + (uint64_t)stream->facts.mtu - 1) / stream->facts.mtu;
}

static void open_read(struct stream *stream, struct stream_message *message,
		      const struct trace_packet *packet)
{
	if (message->is_open)
		return;
	message->is_open = true;
	stream->reads++;
	if (stream->reads > stream->counts.most_reads)
		stream->counts.most_reads = stream->reads;
	if (stream->reads > stream->facts.read_depth)
		stream_violation(stream, packet, RULE_READ_DEPTH);
}

static void begin_message(struct stream *stream, const struct trace_packet *packet,
			  uint64_t position)
{
	enum wire_family family = wire_op_family(packet->opcode);
	struct stream_message *message;

	/* No request may pass a limited one (rule C15). */
	if (stream_waits(stream))
		stream_violation(stream, packet, RULE_OVERTAKES);
	stream->is_limited = false;
	message = array_append(&stream->messages);
	*message = (struct stream_message){
		.first = position,
		.end = position + 1,
		.answered = position,
		.family = (uint8_t)family,
		.needs_receive = family == WIRE_FAMILY_SEND,
		.begun_before = !(wire_op_position(packet->opcode) & (WIRE_FIRST | WIRE_ONLY)),
		.uncredited = stream->uncredited,
	};
	if (family == WIRE_FAMILY_READ)
		message->end = position + read_packets(stream, packet->dma_length);
	if (!message->begun_before)
		count_message(&stream->counts, packet);
	/* Uncredited requests other than WRITEs count when they are begun (rule C12). */
	if (family != WIRE_FAMILY_SEND && family != WIRE_FAMILY_WRITE)
		credit_message_counted(stream, message);
	if (has_response(family))
		open_read(stream, message, packet);
}

/* Checks the packet that needs a receive WQE (rule C13). */
static void check_limited(struct stream *stream, const struct trace_packet *packet,
			  uint64_t position)
{
	if (!stream_beyond(stream, stream->messages.count - 1))
		return;
	stream->is_limited = true;
	stream->limited = position;
	stream->counts.limited++;
	stream_note(stream, packet, position, STREAM_LIMITED);
	if (!(packet->flags & TRACE_ACK_REQUEST))
		stream_violation(stream, packet, RULE_LIMITED_ASKS);
}

/* Adds a packet, perhaps the last one, to the newest message. */
static void continue_message(struct stream *stream, const struct trace_packet *packet,
			     uint64_t position)
{
	struct stream_message *message = &stream->messages.items[stream->messages.count - 1];
	enum wire_position place = wire_op_position(packet->opcode);
	bool begins = place & (WIRE_FIRST | WIRE_ONLY);
	bool ends = place & (WIRE_LAST | WIRE_ONLY);

	if (!begins)
		message->end = position + 1;
	if (message->family == WIRE_FAMILY_SEND) {
		if (begins)
			check_limited(stream, packet, position);
		else if (stream_waits(stream))
			stream_violation(stream, packet, RULE_LIMITED_STOPS);
	}
	if (message->family != WIRE_FAMILY_WRITE || !ends)
		return;
	message->needs_receive = has_immediate(packet->opcode);
	if (!message->needs_receive) {
		credit_message_counted(stream, message);
		return;
	}
	if (!message->begun_before) {
		stream->counts.writes_immediate++;
		stream->counts.writes--;
	}
	check_limited(stream, packet, position);
}

/* Checks rules S1 and S15. */
static void check_shape(struct stream *stream, const struct trace_packet *packet)
{
	enum wire_position place = wire_op_position(packet->opcode);
	enum wire_family family = wire_op_family(packet->opcode);
	uint32_t mtu = stream->facts.mtu;
	bool more_follow = place & (WIRE_FIRST | WIRE_MIDDLE);

	if (packet->flags & TRACE_SOLICITED && more_follow)
		stream_violation(stream, packet, RULE_SOLICITED);
	if (mtu == 0 || (family != WIRE_FAMILY_SEND && family != WIRE_FAMILY_WRITE))
		return;
	if ((more_follow && packet->payload != mtu) || packet->payload > mtu ||
	    (place == WIRE_LAST && packet->payload == 0))
		stream_violation(stream, packet, RULE_LENGTH);
}

static void new_packet(struct stream *stream, const struct trace_packet *packet, uint64_t position)
{
	enum wire_position place = wire_op_position(packet->opcode);

	if (stream->opcode != -2 && !wire_op_may_follow(stream->opcode, packet->opcode))
		stream_violation(stream, packet, RULE_OPCODE_ORDER);
	/* A message whose first packet is missing counts, too. */
	if (place & (WIRE_FIRST | WIRE_ONLY) || stream->opcode < 0)
		begin_message(stream, packet, position);
	continue_message(stream, packet, position);
	stream->opcode = place & (WIRE_LAST | WIRE_ONLY) ? -1 : packet->opcode;
	stream->next = stream->messages.items[stream->messages.count - 1].end;
	if (stream->next - stream->unacked > stream->counts.most_unacknowledged)
		stream->counts.most_unacknowledged = stream->next - stream->unacked;
	stream->counts.payload_bytes += packet->payload;
	if (!stream->is_limited || stream->limited != position)
		stream_note(stream, packet, position, STREAM_SENT);
	stream_note_limit(stream, packet->time_ns);
}

/* Handles missing packets before position: lost before the point of capture, or by the capture. */
static void skip_gap(struct stream *stream, uint64_t position)
{
	struct stream_message *last =
		stream->messages.count ? &stream->messages.items[stream->messages.count - 1] : NULL;

	/* The size of a READ is unknown without MTU; take it from the next PSN. */
	if (stream->facts.mtu == 0 && last && last->family == WIRE_FAMILY_READ &&
	    last->end == stream->next) {
		last->end = position;
		stream->next = position;
		return;
	}
	spans_add(&stream->gaps, stream->next, position);
	stream->next = position;
	stream->opcode = -2;
	/* The number of messages in the hole will follow from an MSN. */
	stream->base_known = stream->base_certain = stream->lsn_known = false;
	stream->base_from = stream->messages.count;
	stream->is_limited = false;
}

static void old_packet(struct stream *stream, const struct trace_packet *packet, uint64_t position)
{
	enum wire_family family = wire_op_family(packet->opcode);
	struct stream_message *message;

	if (spans_take(&stream->gaps, position)) {
		stream->counts.late_packets++;
		stream->counts.payload_bytes += packet->payload;
		if (wire_op_position(packet->opcode) & (WIRE_FIRST | WIRE_ONLY))
			count_message(&stream->counts, packet);
		stream_note(stream, packet, position, STREAM_LATE);
		return;
	}
	stream->counts.resent_packets++;
	if (position < stream->unacked)
		stream->counts.resent_acknowledged++;
	message = has_response(family) ? stream_find(stream, position) : NULL;
	/* It requests the responses that are missing from here on (rule S12). */
	if (message && message->family == family &&
	    spans_first(&stream->unanswered, position, message->answered) < message->end)
		open_read(stream, message, packet);
	stream_note(stream, packet, position, STREAM_RESENT);
}

static void start(struct stream *stream, const struct trace_packet *packet)
{
	stream->started = true;
	stream->begin_ns = packet->time_ns;
	if (!stream->facts.start_is_known || packet->psn != stream->facts.start)
		stream->next = stream_position(stream, packet->psn);
	else
		stream->base_known = stream->base_certain = true;
	stream->first = stream->unacked = stream->next;
	if (stream->base_certain)
		stream->opcode = -1;
	/* An ACK before the first request has reported the initial credits (rule C9). */
	if (!stream->ghosts || stream->ghost_psn != psn_sub(packet->psn, 1)) {
		stream->lsn_known = false;
		return;
	}
	stream->counts.unsolicited_acks += stream->ghosts;
	if (stream->ghost_msn == 0)
		stream->base_known = stream->base_certain = true;
	else if (stream->base_certain)
		stream_violation(stream, packet, RULE_INITIAL_MSN);
	if (!stream->base_known) {
		stream->base = stream->ghost_msn;
		stream->base_known = true;
	}
}

void stream_request(struct stream *stream, const struct trace_packet *packet)
{
	struct stream_sent *sent;
	uint64_t position;
	bool again;

	if (!stream->sent)
		stream->sent = array_zeroed(STREAM_SENT_SLOTS, sizeof(*stream->sent));
	if (!stream->started)
		start(stream, packet);
	position = stream_position(stream, packet->psn);
	again = position < stream->next;
	stream->end_ns = packet->time_ns;
	stream->counts.request_packets++;
	stream->counts.ack_requests += (packet->flags & TRACE_ACK_REQUEST) != 0;
	check_shape(stream, packet);
	nak_answered(stream, packet, position);
	if (again) {
		old_packet(stream, packet, position);
	} else {
		if (position > stream->next)
			skip_gap(stream, position);
		new_packet(stream, packet, position);
	}
	sent = &stream->sent[position % STREAM_SENT_SLOTS];
	*sent = (struct stream_sent){
		.position = position,
		.time_ns = packet->time_ns,
		.again = again,
		.asked = packet->flags & TRACE_ACK_REQUEST,
	};
}
