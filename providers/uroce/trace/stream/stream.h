/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Analysis of one direction of a reliable connection: the requests of one QP and the responses to
 * them.  Packets are processed in the order of time, to reconstruct the state of both ends: sent
 * and acknowledged PSNs, SSN, MSN, credits and LSN, NAKs and the reactions to them.
 *
 * The order at the point of capture may differ from that at an end: a request that follows a
 * response in the capture may have been sent before the response arrived.  A rule is reported as
 * violated only if it is violated for every possible point of capture, provided that the capture is
 * complete.
 *
 * PSNs are extended to 64-bit positions, which do not wrap; the low 24 bits are the PSN.
 */
#ifndef UROCE_TRACE_STREAM_STREAM_H
#define UROCE_TRACE_STREAM_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stream_stats.h"
#include "trace/packet.h"
#include "trace/rules.h"
#include "range_set.h"

/* A message; messages are in the order of their first packets. */
struct stream_message {
	uint64_t first, end;	/* positions of its packets (READ: responses), half-open */
	uint64_t next_response; /* READ: position after its newest response */
	/* Outstanding again after an implied NAK: position of the next new packet at that time */
	uint64_t reopened_at;
	uint32_t uncredited; /* number of uncredited messages up to this one */
	uint8_t family;	     /* enum wire_family */
	bool needs_receive;
	bool starts_before_capture; /* its first packet was not captured */
	bool is_open;		    /* READ or Atomic without a complete response */
};

struct stream_messages {
	struct stream_message *items;
	size_t count, room;
};

/* Classification of a packet. */
enum stream_event_kind {
	STREAM_SENT,
	STREAM_RESENT,
	STREAM_LATE, /* first seen after later PSNs */
	STREAM_LIMITED,
	STREAM_ACK,
	STREAM_UNSOLICITED,
	STREAM_REPEATED, /* ACK with PSN, MSN and credits of the previous one */
	STREAM_STALE,
	STREAM_GHOST,
	STREAM_RESPONSE, /* of a READ or Atomic */
	STREAM_RNR_NAK,
	STREAM_SEQUENCE_NAK,
	STREAM_FATAL_NAK,
	STREAM_VIOLATION,
	STREAM_EVENTS,
};
const char *stream_event_name(enum stream_event_kind kind);

/* A line of the timeline: the packet, and the state after it. */
struct stream_event {
	uint64_t time_ns;
	uint64_t position;	/* position of the packet */
	uint64_t next, unacked; /* next position to send, oldest unacknowledged one */
	int64_t limit;		/* stream_limit(); -1: unknown */
	uint32_t messages;	/* number of messages begun since the start of the capture */
	uint32_t frame;
	uint32_t ssn, lsn, msn; /* 24 bits; UINT32_MAX: unknown */
	uint32_t reads;		/* number of outstanding READs and Atomics */
	uint16_t part;
	uint8_t kind;	 /* enum stream_event_kind */
	uint8_t rule;	 /* of a violation: enum trace_rule */
	uint8_t credits; /* latest credit code; UINT8_MAX: none */
};

struct stream_events {
	struct stream_event *items;
	size_t count, room;
};

/* Parameters of a stream. */
struct stream_params {
	uint32_t mtu;	     /* bytes; 0: unknown */
	bool start_is_known; /* start is the first PSN, according to the CM */
	uint32_t start;
	uint32_t read_depth; /* limit of outstanding READs and Atomics; UINT32_MAX: unknown */
	bool keep_events;
};

/* Number of sent packets that are remembered for measuring round trips. */
#define STREAM_SENT_SLOTS 4096

struct stream_sent {
	uint64_t position, time_ns;
	bool retransmitted, ack_req; /* ack_req: AckReq was set */
};

struct stream_times {
	uint64_t *items; /* ns */
	size_t count, room;
};

struct stream {
	struct stream_params params;
	struct stream_stats counts;
	struct rule_hits rules[TRACE_RULE_COUNT];
	struct stream_messages messages;
	struct stream_events events;
	struct stream_times round_trips;
	uint64_t begin_ns, end_ns;
	bool started; /* a request was seen, so positions are valid */

	/* requester */
	uint64_t first, next, unacked;
	int opcode; /* of the last new packet; -1: no message in progress, -2: unknown */
	struct range_set missing_requests, missing_responses;
	/* ring of STREAM_SENT_SLOTS, by position; NULL before a request */
	struct stream_sent *sent;
	size_t oldest_read; /* index of a message; no READ before it is outstanding */
	uint32_t reads;

	/* sequence numbers: the SSN of message n (from 0) is ssn_base + n + 1 */
	uint32_t ssn_base;
	bool ssn_base_known, ssn_base_exact;
	size_t ssn_base_from; /* first message for which ssn_base is valid */
	uint32_t uncredited;

	/* credits */
	/* unlimited: last credit code was 11111b; credits_seen: one was not */
	bool aeth_seen, unlimited, credits_seen;
	uint8_t code;
	uint32_t msn, lsn;
	bool lsn_known;
	bool newest_is_limited; /* the newest message was beyond LSN ... */
	/* ... when the packet that needs a receive WQE, at this position, was sent */
	uint64_t limited_position;
	uint64_t limit_reached_ns; /* time at which the credit limit was reached, ns; 0: below */
	uint32_t initial_acks;	   /* number of ACKs with initial_ack_psn before any request */
	uint32_t initial_ack_psn, initial_ack_msn;
	uint8_t lowest, highest; /* lowest and highest credit code */

	/* NAKs without a reaction so far */
	bool rnr_pending, nak_pending;
	uint64_t rnr_position, rnr_ns, rnr_wait_ns;
	uint64_t nak_position, nak_ns;
};

void stream_init(struct stream *stream, const struct stream_params *params);
void stream_free(struct stream *stream);

/* Process a packet of the requester or of the responder; it must have no flag of TRACE_IGNORED. */
void stream_request(struct stream *stream, const struct trace_packet *packet);
void stream_response(struct stream *stream, const struct trace_packet *packet);
/* To be called after the last packet; completes times and counts. */
void stream_finish(struct stream *stream);

/* Returns the SSN of the newest message; UINT32_MAX if unknown. */
uint32_t stream_ssn(const struct stream *stream);
/*
 * Returns the number of messages, counted from the start of the capture, that the credits allow; -1
 * if unknown.
 */
int64_t stream_limit(const struct stream *stream);
/* Returns the index of the message at a position, plus the fraction of it before the position. */
double stream_message_at(const struct stream *stream, uint64_t position);
/* Returns the message at a position, or NULL. */
struct stream_message *stream_find_message(struct stream *stream, uint64_t position);

/* Returns the payload rate of requests and READ responses together, in bytes per second. */
double stream_goodput(const struct stream *stream);
struct stream_round_trips {
	uint64_t count, least, median, p99, most; /* ns */
};
struct stream_round_trips stream_round_trips(struct stream *stream);

#endif
