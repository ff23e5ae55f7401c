/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * One direction of a reliable connection: the requests of one queue pair and the responses to them,
 * packet by packet in the order of time, made into what both ends must know: what is sent and
 * acknowledged, SSN, MSN, credits and LSN, NAKs and what followed.
 *
 * Packets are seen where they were captured, which is not where they are handled: a request may
 * have left before a response that was captured first has arrived.  All judgements lean to the side
 * of the queue pairs: what is called a violation was one wherever the capture was made, provided
 * that the capture has all packets.
 *
 * PSNs are 64-bit positions here, which never wrap: their lower 24 bits are the PSN.
 */
#ifndef UROCE_TRACE_STREAM_H
#define UROCE_TRACE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "counts.h"
#include "packet.h"
#include "rules.h"
#include "spans.h"

/* A message, in the order in which they were begun. */
struct stream_message {
	uint64_t first, end; /* positions; of a READ: those of its responses */
	uint64_t answered;   /* READ: the position of the next response */
	uint32_t uncredited; /* messages up to this one that need no receive WQE */
	uint8_t family;	     /* enum wire_family */
	bool needs_receive;
	bool begun_before; /* its first packet is not in the capture */
	bool is_open;	   /* READ, Atomic: begun and not answered */
};

struct stream_messages {
	struct stream_message *items;
	size_t count, room;
};

/* What happened with a packet. */
enum stream_event_kind {
	STREAM_SENT,
	STREAM_RESENT,
	STREAM_LATE, /* below others, and not seen before */
	STREAM_LIMITED,
	STREAM_ACK,
	STREAM_UNSOLICITED,
	STREAM_REPEATED, /* an ACK again */
	STREAM_STALE,
	STREAM_GHOST,
	STREAM_RESPONSE, /* to a READ or an Atomic */
	STREAM_RNR_NAK,
	STREAM_SEQUENCE_NAK,
	STREAM_FATAL_NAK,
	STREAM_VIOLATION,
	STREAM_EVENTS,
};
const char *stream_event_name(enum stream_event_kind kind);

/* A line of the timeline: the packet, and the state behind it. */
struct stream_event {
	uint64_t time_ns;
	uint64_t position;	/* of the packet */
	uint64_t next, unacked; /* positions: the next to be sent, the oldest not acknowledged */
	int64_t limit; /* messages that credits allow, counted as in messages; -1: no limit known */
	uint32_t messages; /* begun since the capture began */
	uint32_t frame;
	uint32_t ssn, lsn, msn; /* 24 bits; UINT32_MAX: not known */
	uint32_t reads;		/* READs and Atomics under way */
	uint16_t part;
	uint8_t kind;	 /* enum stream_event_kind */
	uint8_t rule;	 /* enum trace_rule, of a violation */
	uint8_t credits; /* the code last heard; UINT8_MAX: none */
};

struct stream_events {
	struct stream_event *items;
	size_t count, room;
};

/* What is known beforehand. */
struct stream_facts {
	uint32_t mtu;	     /* bytes; 0: not known */
	bool start_is_known; /* start is the first PSN: the connection manager says so */
	uint32_t start;
	uint32_t read_depth; /* READs and Atomics that may be under way; UINT32_MAX: not known */
	bool keep_events;
};

/* Enough for the packets under way: of older ones no round trip is measured. */
#define STREAM_SENT_SLOTS 4096

struct stream_sent {
	uint64_t position, time_ns;
	bool again, asked; /* AckReq */
};

struct stream_times {
	uint64_t *items; /* ns */
	size_t count, room;
};

struct stream {
	struct stream_facts facts;
	struct stream_counts counts;
	struct rule_hits rules[TRACE_RULE_COUNT];
	struct stream_messages messages;
	struct stream_events events;
	struct stream_times round_trips;
	uint64_t begin_ns, end_ns;
	bool started; /* a request was seen: positions mean something */

	/* requester */
	uint64_t first, next, unacked;
	int opcode; /* of the last new packet; -1: none under way, -2: not known */
	struct spans gaps, unanswered; /* requests and responses that are missing */
	struct stream_sent *sent;      /* STREAM_SENT_SLOTS, by position; NULL before a request */
	size_t oldest_read;	       /* message: all READs and Atomics before are answered */
	uint32_t reads;

	/* sequence numbers: the SSN of message n, from 0, is base + n + 1 */
	uint32_t base;
	bool base_known, base_certain;
	size_t base_from; /* the first message that it is true of */
	uint32_t uncredited;

	/* credits */
	bool heard, unlimited, counted; /* any; 11111b last; any other, ever */
	uint8_t code;
	uint32_t msn, lsn;
	bool lsn_known;
	bool is_limited;      /* the newest message was begun beyond LSN ... */
	uint64_t limited;     /* ... by the packet at this position */
	uint64_t limit_since; /* ns; 0: below the limit */
	uint32_t ghosts;      /* ACKs of one PSN that came before any request */
	uint32_t ghost_psn, ghost_msn;
	uint8_t lowest, highest; /* codes; of those that count */

	/* NAKs that wait for an answer */
	bool rnr_waits, nak_waits;
	uint64_t rnr_position, rnr_ns, rnr_wait_ns;
	uint64_t nak_position, nak_ns;
};

void stream_init(struct stream *stream, const struct stream_facts *facts);
void stream_free(struct stream *stream);

/* A packet of the requester, or of the responder.  Packets with TRACE_IGNORED are not for here. */
void stream_request(struct stream *stream, const struct trace_packet *packet);
void stream_response(struct stream *stream, const struct trace_packet *packet);
/* After the last packet: times that were still running. */
void stream_finish(struct stream *stream);

/* SSN of the newest message; UINT32_MAX when it is not known. */
uint32_t stream_ssn(const struct stream *stream);
/* How many messages, counted from the first of the capture, credits allow; -1: not known. */
int64_t stream_limit(const struct stream *stream);
/* Message number and part of it, from 0, that a position is: the height in a plot. */
double stream_height(const struct stream *stream, uint64_t position);
/* The message that has a position, or NULL. */
struct stream_message *stream_find(struct stream *stream, uint64_t position);

/* Bytes in a second that arrived as payload, of requests and READ responses together. */
double stream_goodput(const struct stream *stream);
struct stream_round_trips {
	uint64_t count, least, median, p99, most; /* ns */
};
struct stream_round_trips stream_round_trips(struct stream *stream);

#endif
