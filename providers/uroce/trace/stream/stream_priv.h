/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declarations shared by the files of a stream. */
#ifndef UROCE_TRACE_STREAM_STREAM_PRIV_H
#define UROCE_TRACE_STREAM_STREAM_PRIV_H

#include "engine/base/psn.h"
#include "stream.h"

/*
 * Reactions later than LATE_NS plus LATE_ROUND_TRIPS times the minimum round trip are late (rules
 * S7, S11).  A busy host may not schedule a process for some milliseconds.
 */
#define LATE_NS 20000000u
#define LATE_ROUND_TRIPS 8

static inline uint64_t stream_position(const struct stream *stream, uint32_t psn)
{
	return stream->next + (uint64_t)(int64_t)psn_diff(psn, (uint32_t)stream->next & PSN_MASK);
}

static inline uint32_t stream_ssn_of(const struct stream *stream, size_t message)
{
	return psn_add(stream->ssn_base, (uint32_t)(message + 1) & PSN_MASK);
}

/* Returns true if the message is known to be beyond LSN (rule C13). */
bool stream_is_limited(const struct stream *stream, size_t message);
/*
 * Returns true if the newest message waits for credits: it is limited, and its packet that needs a
 * receive WQE is not acknowledged.  Once this packet is acknowledged the message has a receive WQE,
 * which the credits of that ACK do not count any more (rule C5).
 */
static inline bool stream_waits_for_credits(const struct stream *stream)
{
	return stream->newest_is_limited && stream->unacked <= stream->limited_position &&
	       stream_is_limited(stream, stream->messages.count - 1);
}

/* Updates the times at the credit limit, after a new message or a new limit. */
void stream_update_limit(struct stream *stream, uint64_t now_ns);
void stream_add_event(struct stream *stream, const struct trace_packet *packet, uint64_t position,
		      enum stream_event_kind kind);
void stream_violation(struct stream *stream, const struct trace_packet *packet,
		      enum trace_rule rule);
bool stream_is_late(struct stream *stream, uint64_t ns);

/* stream_nak.c: process a request that may be the reaction to a NAK, and a NAK. */
void nak_check_reaction(struct stream *stream, const struct trace_packet *packet,
			uint64_t position);
void nak_process(struct stream *stream, const struct trace_packet *packet, uint64_t position);

/*
 * stream_credit.c: processes the MSN and credits of a positive AETH that acknowledges a position;
 * is_new: it acknowledges new packets.
 */
void credit_process(struct stream *stream, const struct trace_packet *packet, uint64_t position,
		    bool is_new);
void credit_count_uncredited(struct stream *stream, struct stream_message *message);

#endif
