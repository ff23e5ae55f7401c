/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A whole capture: its packets, the flows that they belong to, the connections that the flows make,
 * and what is derived of each direction.
 */
#ifndef UROCE_TRACE_TRACE_H
#define UROCE_TRACE_TRACE_H

#include "cm_log.h"
#include "flow.h"
#include "frame.h"
#include "packet.h"
#include "pairing.h"
#include "stream.h"
#include "wire/packet.h"

/* A pair of flows, or one flow whose other direction is not there. */
struct trace_connection {
	uint32_t
		flows[2]; /* the first is that of the first packet; FLOW_NONE: not in the capture */
	enum pairing_by by;
	bool is_reliable;		/* RC or XRC: streams are set */
	const struct cm_connection *cm; /* NULL: set up without */
	/* streams[i]: requests of flows[i], responses to them in flows[1 - i] */
	struct stream streams[2];
};

struct trace_connections {
	struct trace_connection *items;
	size_t count, room;
};

/* What is said of the file as a whole. */
struct trace_totals {
	uint64_t frames, roce, others;
	uint64_t verdicts[FRAME_VERDICTS];
	uint64_t malformed;	  /* to port 4791 and no packet of RoCEv2 */
	uint32_t first_malformed; /* frame */
	enum wire_error why;
	uint64_t bursts,
		cut_bursts; /* frames of several packets; those that the snap length has cut */
	uint64_t unchecked; /* packets without a checked ICRC */
	uint64_t copies, refused, management, congestion;
	uint64_t begin_ns, end_ns;
	bool backwards; /* the file is not in the order of time: it has been sorted */
};

struct trace {
	struct trace_totals totals;
	struct trace_packets packets;
	struct flows flows;
	struct cm_log cm;
	struct trace_connections connections;
	struct rule_hits sender_rules[TRACE_RULE_COUNT]; /* of any packet: ICRC, MigReq, P_Key */
};

struct trace_options {
	uint32_t qpn;	  /* only connections with this queue pair; UINT32_MAX: all */
	bool keep_events; /* for a timeline or a plot */
};

/* A frame of the capture; the context is a struct trace. */
struct capture_frame;
void trace_add(void *context, const struct capture_frame *frame);
/* After the last frame: everything else. */
void trace_derive(struct trace *trace, const struct trace_options *options);
void trace_free(struct trace *trace);

#endif
