/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* NAKs, and the time that the requester takes to react. */
#include "engine/base/aeth.h"
#include "stream_internal.h"

void nak_answered(struct stream *stream, const struct trace_packet *packet, uint64_t position)
{
	uint64_t took;

	if (stream->rnr_waits && position <= stream->rnr_position) {
		took = packet->time_ns - stream->rnr_ns;
		stream->counts.rnr_ns += took;
		stream->rnr_waits = false;
		/* Rule S10.  Requesting the rest of an earlier READ is not a retry of this one. */
		if (took < stream->rnr_wait_ns && position == stream->rnr_position)
			stream_violation(stream, packet, RULE_RNR_EARLY);
	}
	/* A later PSN below next is a retransmission, too: that of the NAK's PSN was lost. */
	if (stream->nak_waits && (position <= stream->nak_position || position < stream->next)) {
		took = packet->time_ns - stream->nak_ns;
		stream->counts.sequence_ns += took;
		stream->nak_waits = false;
		/* A requester that waits for an RNR timer or for credits is not late. */
		if (stream_is_late(stream, took) && !stream->rnr_wait_ns)
			stream_violation(stream, packet, RULE_NAK_LATE);
	}
}

static void rnr_nak(struct stream *stream, const struct trace_packet *packet, uint64_t position)
{
	struct stream_message *message = stream_find(stream, position);

	stream->counts.rnr_naks++;
	/* An advertised receive WQE is missing (rule C5). */
	if (message && message->needs_receive && stream->lsn_known && !stream->unlimited &&
	    stream->base_certain &&
	    !stream_beyond(stream, (size_t)(message - stream->messages.items)))
		stream_violation(stream, packet, RULE_CREDITS_LIE);
	stream->rnr_waits = true;
	stream->rnr_position = position;
	stream->rnr_ns = packet->time_ns;
	stream->rnr_wait_ns = rnr_timer_ns(syndrome_code(packet->syndrome));
	stream_note(stream, packet, position, STREAM_RNR_NAK);
}

static void sequence_nak(struct stream *stream, const struct trace_packet *packet,
			 uint64_t position)
{
	stream->counts.sequence_naks++;
	/* Rule S4; an RNR NAK has already requested the same PSN. */
	if ((stream->nak_waits && stream->nak_position == position) ||
	    (stream->rnr_waits && stream->rnr_position == position))
		stream_violation(stream, packet, RULE_NAK_TWICE);
	if (!stream->rnr_waits)
		stream->rnr_wait_ns = 0;
	stream->nak_waits = true;
	stream->nak_position = position;
	stream->nak_ns = packet->time_ns;
	stream_note(stream, packet, position, STREAM_SEQUENCE_NAK);
}

void nak_arrived(struct stream *stream, const struct trace_packet *packet, uint64_t position)
{
	uint8_t code = syndrome_code(packet->syndrome);

	if (syndrome_kind(packet->syndrome) == AETH_RNR_NAK) {
		rnr_nak(stream, packet, position);
		return;
	}
	if (syndrome_kind(packet->syndrome) != AETH_NAK)
		return;
	if (code == NAK_PSN_SEQUENCE) {
		sequence_nak(stream, packet, position);
		return;
	}
	stream->counts.invalid_naks += code == NAK_INVALID_REQUEST;
	stream->counts.access_naks += code == NAK_REMOTE_ACCESS;
	stream->counts.operational_naks += code == NAK_REMOTE_OPERATIONAL;
	stream_note(stream, packet, position, STREAM_FATAL_NAK);
}
