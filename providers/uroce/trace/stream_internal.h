/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* What the files of a stream share. */
#ifndef UROCE_TRACE_STREAM_INTERNAL_H
#define UROCE_TRACE_STREAM_INTERNAL_H

#include "engine/base/psn.h"
#include "stream.h"

/*
 * Later than that is late (rules S7, S11): a busy host may not run a process for some milliseconds.
 * A long way adds to it.
 */
#define LATE_NS 20000000u
#define LATE_ROUND_TRIPS 8

static inline uint64_t stream_position(const struct stream *stream, uint32_t psn)
{
	return stream->next + (uint64_t)(int64_t)psn_diff(psn, (uint32_t)stream->next & PSN_MASK);
}

static inline uint32_t stream_ssn_of(const struct stream *stream, size_t message)
{
	return psn_add(stream->base, (uint32_t)(message + 1) & PSN_MASK);
}

/* Is the message beyond LSN, as far as that is known (rule C13)? */
bool stream_beyond(const struct stream *stream, size_t message);
/*
 * Does the newest message still wait for credits?  It does not when the packet that needs a receive
 * WQE is acknowledged: it has got one then, which the credits of that ACK do not count any more
 * (rule C5).
 */
static inline bool stream_waits(const struct stream *stream)
{
	return stream->is_limited && stream->unacked <= stream->limited &&
	       stream_beyond(stream, stream->messages.count - 1);
}

/* The newest message may have come to the limit, or the limit may have moved. */
void stream_note_limit(struct stream *stream, uint64_t now_ns);
void stream_note(struct stream *stream, const struct trace_packet *packet, uint64_t position,
		 enum stream_event_kind kind);
void stream_violation(struct stream *stream, const struct trace_packet *packet,
		      enum trace_rule rule);
bool stream_is_late(struct stream *stream, uint64_t ns);

/* A request is there that answers a NAK (stream_nak.c), or a NAK itself. */
void nak_answered(struct stream *stream, const struct trace_packet *packet, uint64_t position);
void nak_arrived(struct stream *stream, const struct trace_packet *packet, uint64_t position);

/* A positive AETH (stream_credit.c): MSN, and credits, which position is acknowledged with. */
void credit_arrived(struct stream *stream, const struct trace_packet *packet, uint64_t position,
		    bool is_new);
void credit_message_counted(struct stream *stream, struct stream_message *message);

#endif
