/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* NAKs, and the time that the requester takes to react. */
#include "engine/base/aeth.h"
#include "stream_priv.h"

void nak_check_reaction(struct stream *stream, const struct trace_packet *packet, uint64_t position)
{
	uint64_t elapsed;

	if (stream->rnr_pending && position <= stream->rnr_position) {
		elapsed = packet->time_ns - stream->rnr_ns;
		stream->counts.rnr_ns += elapsed;
		stream->rnr_pending = false;
		/*
		 * Rule S10.  An earlier position may request the rest of a READ, which need not
		 * wait for the RNR NAK timer.
		 */
		if (elapsed < stream->rnr_wait_ns && position == stream->rnr_position)
			stream_violation(stream, packet, RULE_RNR_EARLY);
	}
	/*
	 * A later PSN below next is a reaction, too: the retransmission of the NAK's PSN was not
	 * captured.
	 */
	if (stream->nak_pending && (position <= stream->nak_position || position < stream->next)) {
		elapsed = packet->time_ns - stream->nak_ns;
		stream->counts.sequence_ns += elapsed;
		stream->nak_pending = false;
		/* After an RNR NAK the requester waits for the RNR NAK timer, so it is not late. */
		if (stream_is_late(stream, elapsed) && !stream->rnr_wait_ns)
			stream_violation(stream, packet, RULE_NAK_LATE);
	}
}

static void process_rnr_nak(struct stream *stream, const struct trace_packet *packet,
			    uint64_t position)
{
	struct stream_message *message = stream_find_message(stream, position);

	stream->counts.rnr_naks++;
	/* An advertised receive WQE is missing (rule C5). */
	if (message && message->needs_receive && stream->lsn_known && !stream->unlimited &&
	    stream->ssn_base_exact &&
	    !stream_is_limited(stream, (size_t)(message - stream->messages.items)))
		stream_violation(stream, packet, RULE_CREDITS_TOO_HIGH);
	stream->rnr_pending = true;
	stream->rnr_position = position;
	stream->rnr_ns = packet->time_ns;
	stream->rnr_wait_ns = rnr_timer_ns(syndrome_code(packet->syndrome));
	stream_add_event(stream, packet, position, STREAM_RNR_NAK);
}

static void process_sequence_nak(struct stream *stream, const struct trace_packet *packet,
				 uint64_t position)
{
	stream->counts.sequence_naks++;
	/*
	 * Rule S4: only one NAK for a missing PSN.  A pending RNR NAK has requested its PSN as
	 * well.
	 */
	if ((stream->nak_pending && stream->nak_position == position) ||
	    (stream->rnr_pending && stream->rnr_position == position))
		stream_violation(stream, packet, RULE_NAK_TWICE);
	if (!stream->rnr_pending)
		stream->rnr_wait_ns = 0;
	stream->nak_pending = true;
	stream->nak_position = position;
	stream->nak_ns = packet->time_ns;
	stream_add_event(stream, packet, position, STREAM_SEQUENCE_NAK);
}

void nak_process(struct stream *stream, const struct trace_packet *packet, uint64_t position)
{
	uint8_t code = syndrome_code(packet->syndrome);

	if (syndrome_kind(packet->syndrome) == AETH_RNR_NAK) {
		process_rnr_nak(stream, packet, position);
		return;
	}
	if (syndrome_kind(packet->syndrome) != AETH_NAK)
		return;
	if (code == NAK_PSN_SEQUENCE) {
		process_sequence_nak(stream, packet, position);
		return;
	}
	stream->counts.invalid_naks += code == NAK_INVALID_REQUEST;
	stream->counts.access_naks += code == NAK_REMOTE_ACCESS;
	stream->counts.operational_naks += code == NAK_REMOTE_OPERATIONAL;
	stream_add_event(stream, packet, position, STREAM_FATAL_NAK);
}
