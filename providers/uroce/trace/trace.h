/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Analysis of a capture: packets, flows, connections (pairs of flows), and a stream for each
 * direction of a reliable connection.
 */
#ifndef UROCE_TRACE_TRACE_H
#define UROCE_TRACE_TRACE_H

#include "cm_log.h"
#include "flow.h"
#include "trace/input/frame.h"
#include "packet.h"
#include "flow_pair.h"
#include "trace/stream/stream.h"
#include "wire/packet.h"

/* A pair of flows, or one flow without its opposite direction. */
struct trace_connection {
	/* [0]: the flow of the first packet; [1]: the opposite one, or FLOW_NONE */
	uint32_t flows[2];
	enum flow_pair_by by;
	bool is_reliable;		/* RC or XRC; streams are valid */
	const struct cm_connection *cm; /* NULL if its CM messages were not captured */
	/* streams[i]: the requests of flows[i] and the responses in flows[1 - i] */
	struct stream streams[2];
};

struct trace_connections {
	struct trace_connection *items;
	size_t count, room;
};

/* Totals of the file. */
struct trace_totals {
	uint64_t frames, roce, others;
	uint64_t verdicts[FRAME_VERDICTS];
	uint64_t malformed;	  /* number of datagrams to port 4791 that are not RoCEv2 */
	uint32_t first_malformed; /* frame number of the first of them */
	enum wire_error why;
	uint64_t bursts,
		cut_bursts; /* frames of several packets; frames of which packets are missing */
	uint64_t unchecked; /* number of packets whose ICRC was not checked */
	uint64_t copies, refused, management, congestion;
	uint64_t begin_ns, end_ns;
	bool backwards; /* the file is not in the order of time */
};

struct trace {
	struct trace_totals totals;
	struct trace_packets packets;
	struct flows flows;
	struct cm_log cm;
	struct trace_connections connections;
	/* rules for all packets: ICRC, MigReq, P_Key */
	struct rule_hits sender_rules[TRACE_RULE_COUNT];
};

struct trace_options {
	uint32_t qpn;	  /* analyse only connections of this QP; UINT32_MAX: all */
	bool keep_events; /* needed for a timeline or a plot */
};

/*
 * Adds the packets of a frame to the struct trace that context points to; callback of
 * capture_read().
 */
struct capture_frame;
void trace_add(void *context, const struct capture_frame *frame);
/*
 * Called after the last frame: marks duplicates, pairs flows, and passes each packet to a stream.
 */
void trace_analyze(struct trace *trace, const struct trace_options *options);
void trace_free(struct trace *trace);

/* ---- dedup.c ---- */

/*
 * Detects duplicate records of a packet in a capture made in several places: at both ends, on all
 * interfaces, or by sender and receiver in one process.  They must be distinguished from
 * retransmissions, whose bytes may be the same.
 */

/*
 * Marks all records of a packet but one with TRACE_DUPLICATE and returns how many it has marked.
 * Records with the same hash are duplicates in these cases:
 *
 * - The direction is known: inbound records duplicate outbound ones.  The requester's
 *   records are kept: outbound requests and inbound responses.
 * - The IPv4 ID is from a counter: all records close in time are duplicates.
 * - Otherwise, if nearly all such packets occur n = 2, 3 or 4 times: all but every n-th record.
 */
uint64_t dedup_mark(struct trace_packets *packets);

#endif
