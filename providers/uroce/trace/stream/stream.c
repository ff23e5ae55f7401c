/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "stream.h"

#include <stddef.h>
#include <string.h>

#include "trace/array.h"
#include "stream_priv.h"

/* First position, large enough that earlier PSNs have positive positions. */
#define POSITION_START ((uint64_t)1 << 32)

const struct stream_stat_row stream_stat_rows[] = {
#define ROW(field, words, kind)                           \
	{ .name = #field,                                 \
	  .label = (words),                               \
	  .offset = offsetof(struct stream_stats, field), \
	  .unit = STREAM_STAT_##kind },
	STREAM_STATS(ROW)
#undef ROW
		{ 0 },
};

const char *stream_event_name(enum stream_event_kind kind)
{
	static const char *const names[STREAM_EVENTS] = {
		[STREAM_SENT] = "sent",
		[STREAM_RESENT] = "sent-again",
		[STREAM_LATE] = "seen-late",
		[STREAM_LIMITED] = "limited",
		[STREAM_ACK] = "ack",
		[STREAM_UNSOLICITED] = "unsolicited-ack",
		[STREAM_REPEATED] = "repeated-ack",
		[STREAM_STALE] = "stale-ack",
		[STREAM_GHOST] = "ghost-ack",
		[STREAM_RESPONSE] = "response",
		[STREAM_RNR_NAK] = "rnr-nak",
		[STREAM_SEQUENCE_NAK] = "sequence-nak",
		[STREAM_FATAL_NAK] = "fatal-nak",
		[STREAM_VIOLATION] = "violation",
	};

	return names[kind];
}

void stream_init(struct stream *stream, const struct stream_params *params)
{
	memset(stream, 0, sizeof(*stream));
	stream->params = *params;
	stream->opcode = -2;
	stream->next = POSITION_START | params->start;
	stream->unacked = stream->next;
	stream->lowest = UINT8_MAX;
}

void stream_free(struct stream *stream)
{
	free(stream->messages.items);
	free(stream->events.items);
	free(stream->round_trips.items);
	free(stream->sent);
}

uint32_t stream_ssn(const struct stream *stream)
{
	if (!stream->ssn_base_known || stream->messages.count == 0)
		return UINT32_MAX;
	return stream_ssn_of(stream, stream->messages.count - 1);
}

int64_t stream_limit(const struct stream *stream)
{
	int64_t limit;

	if (!stream->lsn_known || stream->unlimited || !stream->ssn_base_known)
		return -1;
	limit = (int64_t)stream->messages.count +
		psn_diff(stream->lsn,
			 psn_add(stream->ssn_base, (uint32_t)stream->messages.count & PSN_MASK));
	return limit < 0 ? 0 : limit;
}

bool stream_is_limited(const struct stream *stream, size_t message)
{
	if (!stream->lsn_known || stream->unlimited || !stream->ssn_base_known)
		return false;
	return psn_diff(stream_ssn_of(stream, message), stream->lsn) > 0;
}

void stream_update_limit(struct stream *stream, uint64_t now_ns)
{
	int64_t limit = stream_limit(stream);
	/* A QP without requests that need a receive WQE always is at LSN, but not delayed by it. */
	bool needs_credits = stream->counts.sends + stream->counts.writes_immediate > 0;
	bool at_limit = needs_credits && limit >= 0 && limit <= (int64_t)stream->messages.count;

	if (at_limit && !stream->limit_reached_ns) {
		stream->limit_reached_ns = now_ns;
		stream->counts.limit_times++;
	} else if (!at_limit && stream->limit_reached_ns) {
		stream->counts.limit_ns += now_ns - stream->limit_reached_ns;
		stream->limit_reached_ns = 0;
	}
}

static struct stream_event *new_event(struct stream *stream, const struct trace_packet *packet,
				      uint64_t position)
{
	struct stream_event *event = array_append(&stream->events);

	*event = (struct stream_event){
		.time_ns = packet->time_ns,
		.position = position,
		.next = stream->next,
		.unacked = stream->unacked,
		.limit = stream_limit(stream),
		.messages = (uint32_t)stream->messages.count,
		.frame = packet->frame,
		.part = packet->part,
		.ssn = stream_ssn(stream),
		.lsn = stream->lsn_known && !stream->unlimited ? stream->lsn : UINT32_MAX,
		.msn = stream->aeth_seen ? stream->msn : UINT32_MAX,
		.reads = stream->reads,
		.credits = stream->aeth_seen ? stream->code : UINT8_MAX,
	};
	return event;
}

void stream_add_event(struct stream *stream, const struct trace_packet *packet, uint64_t position,
		      enum stream_event_kind kind)
{
	if (stream->params.keep_events)
		new_event(stream, packet, position)->kind = (uint8_t)kind;
}

void stream_violation(struct stream *stream, const struct trace_packet *packet,
		      enum trace_rule rule)
{
	struct stream_event *event;

	rule_hit(&stream->rules[rule], packet->frame);
	if (!stream->params.keep_events)
		return;
	event = new_event(stream, packet, stream_position(stream, packet->psn));
	event->kind = STREAM_VIOLATION;
	event->rule = (uint8_t)rule;
}

bool stream_is_late(struct stream *stream, uint64_t ns)
{
	uint64_t least = UINT64_MAX;

	if (ns <= LATE_NS)
		return false;
	/* Rarely reached, so the minimum is not stored. */
	for (size_t i = 0; i < stream->round_trips.count; i++)
		if (stream->round_trips.items[i] < least)
			least = stream->round_trips.items[i];
	return stream->round_trips.count == 0 || ns > LATE_NS + LATE_ROUND_TRIPS * least;
}

/* Returns the index of the first message that ends after position, or the number of messages. */
static size_t first_ending_after(const struct stream *stream, uint64_t position)
{
	size_t low = 0, high = stream->messages.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (stream->messages.items[middle].end <= position)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct stream_message *stream_find_message(struct stream *stream, uint64_t position)
{
	size_t at = first_ending_after(stream, position);

	if (at == stream->messages.count || stream->messages.items[at].first > position)
		return NULL;
	return &stream->messages.items[at];
}

double stream_message_at(const struct stream *stream, uint64_t position)
{
	size_t at = first_ending_after(stream, position);
	const struct stream_message *message;

	if (at == stream->messages.count)
		return (double)at;
	message = &stream->messages.items[at];
	if (position < message->first)
		return (double)at;
	return (double)at +
	       (double)(position - message->first) / (double)(message->end - message->first);
}

double stream_goodput(const struct stream *stream)
{
	if (stream->end_ns <= stream->begin_ns)
		return 0;
	return (double)(stream->counts.payload_bytes + stream->counts.read_bytes) * 1e9 /
	       (double)(stream->end_ns - stream->begin_ns);
}

static int compare_times(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

struct stream_round_trips stream_round_trips(struct stream *stream)
{
	struct stream_times *times = &stream->round_trips;
	struct stream_round_trips result = { .count = times->count };

	if (times->count == 0)
		return result;
	qsort(times->items, times->count, sizeof(*times->items), compare_times);
	result.least = times->items[0];
	result.median = times->items[times->count / 2];
	result.p99 = times->items[times->count - 1 - times->count / 100];
	result.most = times->items[times->count - 1];
	return result;
}

void stream_finish(struct stream *stream)
{
	if (stream->limit_reached_ns && stream->end_ns > stream->limit_reached_ns)
		stream->counts.limit_ns += stream->end_ns - stream->limit_reached_ns;
	stream->limit_reached_ns = 0;
	stream->counts.missing_packets = range_set_total(&stream->missing_requests);
	stream->counts.missing_responses = range_set_total(&stream->missing_responses);
}
