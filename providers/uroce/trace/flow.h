/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Flows: what goes from one address to one queue pair at another.  It holds the requests of the
 * sending queue pair, and its responses to the requests of the other one.  A packet names only the
 * queue pair that it is for; which flow is the other direction is found out by pairing.h.
 */
#ifndef UROCE_TRACE_FLOW_H
#define UROCE_TRACE_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "packet.h"
#include "wire/icrc.h"
#include "wire/packet.h"

#define FLOW_NONE UINT32_MAX
/* More than this are not told apart: a host has 2^24 queue pairs, a reader has one screen. */
#define FLOWS_MAX 16384

/* Consecutive PSNs that were seen, as far as they say something when compared with others'. */
struct flow_range {
	uint32_t first, last;	 /* the oldest and the newest PSN, 24 bits */
	uint64_t packets, begin; /* time of the first, ns */
};

struct flow {
	uint8_t src[16], dst[16];
	uint32_t dst_qpn, src_qpn; /* src_qpn: 0 until it is known */
	uint8_t service;	   /* WIRE_RC ... */
	uint16_t src_port;
	bool ports_differ; /* the source port changed on the way */
	bool closed;	   /* what comes now is another flow */
	uint32_t peer;	   /* the other direction, or FLOW_NONE */
	uint32_t older; /* a flow of the same addresses and queue pair that was before, or FLOW_NONE
			 */
	uint32_t mtu;	/* bytes of its First and Middle packets; 0: had none */
	uint64_t packets, bytes; /* bytes: payload */
	uint64_t begin, end;	 /* ns */
	struct flow_range requests, responses;
};

struct flows {
	struct flow *items;
	size_t count, room;
	uint32_t *buckets; /* hash table: index of a flow plus one */
	uint64_t refused;  /* packets of flows beyond FLOWS_MAX */
};

/*
 * The flow that a packet belongs to, made if need be, with the packet counted in; FLOW_NONE when
 * there are too many.  Packets have to come in the order of time.
 */
uint32_t flows_add(struct flows *flows, const struct wire_path *path,
		   const struct wire_packet *packet, uint64_t time_ns);
/* The connection manager begins with this queue pair anew: what comes is another flow. */
void flows_forget(struct flows *flows, const uint8_t src[16], const uint8_t dst[16],
		  uint32_t dst_qpn);
void flows_free(struct flows *flows);

#endif
