/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* The requester's packets: new, retransmitted and missing ones. */
#include "trace/array.h"
#include "stream_priv.h"
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

static void count_message(struct stream_stats *counts, const struct trace_packet *packet)
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

/* Returns the number of PSNs of a READ: that of its responses, at the path MTU (rule S2). */
static uint64_t read_response_count(const struct stream *stream, uint32_t length)
{
	if (length == 0 || stream->params.mtu == 0)
		return 1;
	return (length + (uint64_t)stream->params.mtu - 1) / stream->params.mtu;
}

static void add_outstanding_read(struct stream *stream, struct stream_message *message,
				 const struct trace_packet *packet)
{
	size_t index = (size_t)(message - stream->messages.items);

	if (message->is_open)
		return;
	message->is_open = true;
	if (index < stream->oldest_read) {
		stream->oldest_read = index;
		message->reopened_at = stream->next;
	}
	stream->reads++;
	if (stream->reads > stream->counts.most_reads)
		stream->counts.most_reads = stream->reads;
	if (stream->reads > stream->params.read_depth)
		stream_violation(stream, packet, RULE_READ_DEPTH);
}

static void start_message(struct stream *stream, const struct trace_packet *packet,
			  uint64_t position)
{
	enum wire_family family = wire_op_family(packet->opcode);
	struct stream_message *message;

	/* No request may pass a limited one (rule C15). */
	if (stream_waits_for_credits(stream))
		stream_violation(stream, packet, RULE_PASSES_LIMITED);
	stream->newest_is_limited = false;
	message = array_append(&stream->messages);
	*message = (struct stream_message){
		.first = position,
		.end = position + 1,
		.next_response = position,
		.family = (uint8_t)family,
		.needs_receive = family == WIRE_FAMILY_SEND,
		.starts_before_capture =
			!(wire_op_position(packet->opcode) & (WIRE_FIRST | WIRE_ONLY)),
		.uncredited = stream->uncredited,
	};
	if (family == WIRE_FAMILY_READ)
		message->end = position + read_response_count(stream, packet->dma_length);
	if (!message->starts_before_capture)
		count_message(&stream->counts, packet);
	/*
	 * A WRITE is counted as uncredited at its last packet, which shows that it has no
	 * immediate; other uncredited requests when they are begun (rule C12).
	 */
	if (family != WIRE_FAMILY_SEND && family != WIRE_FAMILY_WRITE)
		credit_count_uncredited(stream, message);
	if (has_response(family))
		add_outstanding_read(stream, message, packet);
}

/*
 * Called for the packet that needs a receive WQE: if the newest message is beyond LSN, counts it as
 * limited and checks for AckReq (rule C13).
 */
static void check_limited(struct stream *stream, const struct trace_packet *packet,
			  uint64_t position)
{
	if (!stream_is_limited(stream, stream->messages.count - 1))
		return;
	stream->newest_is_limited = true;
	stream->limited_position = position;
	stream->counts.limited++;
	stream_add_event(stream, packet, position, STREAM_LIMITED);
	if (!(packet->flags & TRACE_ACK_REQUEST))
		stream_violation(stream, packet, RULE_LIMITED_WITHOUT_ACK_REQ);
}

/* Adds a packet, perhaps the last one, to the newest message. */
static void continue_message(struct stream *stream, const struct trace_packet *packet,
			     uint64_t position)
{
	struct stream_message *message = &stream->messages.items[stream->messages.count - 1];
	enum wire_position pos_flags = wire_op_position(packet->opcode);
	bool is_first = pos_flags & (WIRE_FIRST | WIRE_ONLY);
	bool is_last = pos_flags & (WIRE_LAST | WIRE_ONLY);

	if (!is_first)
		message->end = position + 1;
	if (message->family == WIRE_FAMILY_SEND) {
		if (is_first)
			check_limited(stream, packet, position);
		else if (stream_waits_for_credits(stream))
			stream_violation(stream, packet, RULE_LIMITED_BEYOND_LSN);
	}
	if (message->family != WIRE_FAMILY_WRITE || !is_last)
		return;
	message->needs_receive = has_immediate(packet->opcode);
	if (!message->needs_receive) {
		credit_count_uncredited(stream, message);
		return;
	}
	if (!message->starts_before_capture) {
		stream->counts.writes_immediate++;
		stream->counts.writes--;
	}
	check_limited(stream, packet, position);
}

/* Checks the length (rule S1) and SE (rule S15). */
static void check_length_and_se(struct stream *stream, const struct trace_packet *packet)
{
	enum wire_position pos_flags = wire_op_position(packet->opcode);
	enum wire_family family = wire_op_family(packet->opcode);
	uint32_t mtu = stream->params.mtu;
	bool more_follow = pos_flags & (WIRE_FIRST | WIRE_MIDDLE);

	if (packet->flags & TRACE_SOLICITED && more_follow)
		stream_violation(stream, packet, RULE_SOLICITED);
	if (mtu == 0 || (family != WIRE_FAMILY_SEND && family != WIRE_FAMILY_WRITE))
		return;
	if ((more_follow && packet->payload != mtu) || packet->payload > mtu ||
	    (pos_flags == WIRE_LAST && packet->payload == 0))
		stream_violation(stream, packet, RULE_LENGTH);
}

static void process_new_packet(struct stream *stream, const struct trace_packet *packet,
			       uint64_t position)
{
	enum wire_position pos_flags = wire_op_position(packet->opcode);

	if (stream->opcode != -2 && !wire_op_may_follow(stream->opcode, packet->opcode))
		stream_violation(stream, packet, RULE_OPCODE_ORDER);
	/* A message whose first packet is missing has an SSN, too. */
	if (pos_flags & (WIRE_FIRST | WIRE_ONLY) || stream->opcode < 0)
		start_message(stream, packet, position);
	continue_message(stream, packet, position);
	stream->opcode = pos_flags & (WIRE_LAST | WIRE_ONLY) ? -1 : packet->opcode;
	stream->next = stream->messages.items[stream->messages.count - 1].end;
	if (stream->next - stream->unacked > stream->counts.most_unacknowledged)
		stream->counts.most_unacknowledged = stream->next - stream->unacked;
	stream->counts.payload_bytes += packet->payload;
	if (!stream->newest_is_limited || stream->limited_position != position)
		stream_add_event(stream, packet, position, STREAM_SENT);
	stream_update_limit(stream, packet->time_ns);
}

/* Handles missing packets before position: lost before the point of capture, or by the capture. */
static void skip_missing(struct stream *stream, uint64_t position)
{
	struct stream_message *last =
		stream->messages.count ? &stream->messages.items[stream->messages.count - 1] : NULL;

	/* The size of a READ is unknown without MTU; take it from the next PSN. */
	if (stream->params.mtu == 0 && last && last->family == WIRE_FAMILY_READ &&
	    last->end == stream->next) {
		last->end = position;
		stream->next = position;
		return;
	}
	range_set_add(&stream->missing_requests, stream->next, position);
	stream->next = position;
	stream->opcode = -2;
	/*
	 * The missing packets may be any number of messages, so SSNs are unknown until the next
	 * MSN.
	 */
	stream->ssn_base_known = stream->ssn_base_exact = stream->lsn_known = false;
	stream->ssn_base_from = stream->messages.count;
	stream->newest_is_limited = false;
}

static void process_old_packet(struct stream *stream, const struct trace_packet *packet,
			       uint64_t position)
{
	enum wire_family family = wire_op_family(packet->opcode);
	struct stream_message *message;

	if (range_set_remove(&stream->missing_requests, position)) {
		stream->counts.late_packets++;
		stream->counts.payload_bytes += packet->payload;
		if (wire_op_position(packet->opcode) & (WIRE_FIRST | WIRE_ONLY))
			count_message(&stream->counts, packet);
		stream_add_event(stream, packet, position, STREAM_LATE);
		return;
	}
	stream->counts.resent_packets++;
	if (position < stream->unacked)
		stream->counts.resent_acknowledged++;
	message = has_response(family) ? stream_find_message(stream, position) : NULL;
	/*
	 * A retransmitted READ or Atomic is outstanding again if responses from its PSN on are
	 * missing (rule S12).
	 */
	if (message && message->family == family &&
	    range_set_first(&stream->missing_responses, position, message->next_response) <
		    message->end)
		add_outstanding_read(stream, message, packet);
	stream_add_event(stream, packet, position, STREAM_RESENT);
}

static void start_stream(struct stream *stream, const struct trace_packet *packet)
{
	stream->started = true;
	stream->begin_ns = packet->time_ns;
	if (!stream->params.start_is_known || packet->psn != stream->params.start)
		stream->next = stream_position(stream, packet->psn);
	else
		stream->ssn_base_known = stream->ssn_base_exact = true;
	stream->first = stream->unacked = stream->next;
	if (stream->ssn_base_exact)
		stream->opcode = -1;
	/*
	 * Credits are known only if an ACK of the PSN before this request has reported initial ones
	 * (rule C9).
	 */
	if (!stream->initial_acks || stream->initial_ack_psn != psn_sub(packet->psn, 1)) {
		stream->lsn_known = false;
		return;
	}
	stream->counts.unsolicited_acks += stream->initial_acks;
	if (stream->initial_ack_msn == 0)
		stream->ssn_base_known = stream->ssn_base_exact = true;
	else if (stream->ssn_base_exact)
		stream_violation(stream, packet, RULE_INITIAL_MSN);
	if (!stream->ssn_base_known) {
		stream->ssn_base = stream->initial_ack_msn;
		stream->ssn_base_known = true;
	}
}

void stream_request(struct stream *stream, const struct trace_packet *packet)
{
	struct stream_sent *sent;
	uint64_t position;
	bool retransmitted;

	if (!stream->sent)
		stream->sent = array_calloc(STREAM_SENT_SLOTS, sizeof(*stream->sent));
	if (!stream->started)
		start_stream(stream, packet);
	position = stream_position(stream, packet->psn);
	retransmitted = position < stream->next;
	stream->end_ns = packet->time_ns;
	stream->counts.request_packets++;
	stream->counts.ack_requests += (packet->flags & TRACE_ACK_REQUEST) != 0;
	check_length_and_se(stream, packet);
	nak_check_reaction(stream, packet, position);
	if (retransmitted) {
		process_old_packet(stream, packet, position);
	} else {
		if (position > stream->next)
			skip_missing(stream, position);
		process_new_packet(stream, packet, position);
	}
	sent = &stream->sent[position % STREAM_SENT_SLOTS];
	*sent = (struct stream_sent){
		.position = position,
		.time_ns = packet->time_ns,
		.retransmitted = retransmitted,
		.ack_req = packet->flags & TRACE_ACK_REQUEST,
	};
}
