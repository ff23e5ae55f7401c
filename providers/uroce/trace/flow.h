/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A flow is the packets from one address to one QP at another address: the requests of the sending
 * QP and its responses to requests of the destination QP.  A packet does not contain the number of
 * the sending QP, so flow_pair.h finds the flow of the opposite direction by other properties.
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
/* Maximum number of flows; the packets of further ones are only counted. */
#define FLOWS_MAX 16384

/* PSNs of a flow's requests, or of its responses; flow_pair.h compares those of two flows. */
struct flow_range {
	uint32_t first, last;	 /* oldest and newest PSN, 24 bits */
	uint64_t packets, begin; /* begin: time of the first packet, ns */
};

struct flow {
	uint8_t src[16], dst[16];
	uint32_t dst_qpn, src_qpn; /* src_qpn: 0 if unknown */
	uint8_t service;	   /* WIRE_RC ... */
	uint16_t src_port;
	bool closed;		 /* ended: later packets form another flow */
	uint32_t peer;		 /* index of the opposite direction, or FLOW_NONE */
	uint32_t mtu;		 /* payload size of First and Middle packets; 0: none seen */
	uint64_t packets, bytes; /* bytes: payload */
	uint64_t begin, end;	 /* ns */
	struct flow_range requests, responses;
};

struct flows {
	struct flow *items;
	size_t count, room;
	uint32_t *buckets; /* hash table of indexes plus 1, 0 if empty */
	uint64_t refused;  /* number of packets without a flow, since there are FLOWS_MAX */
};

/*
 * Adds a packet to its flow, which is created if needed.  Returns the index of the flow, or
 * FLOW_NONE if there are FLOWS_MAX flows or no memory for the hash table.  Packets must be added in
 * the order of time.
 */
uint32_t flows_add(struct flows *flows, const struct wire_path *path,
		   const struct wire_packet *packet, uint64_t time_ns);
/*
 * Called when a QP at dst is set up for a new connection: ends the RC, UC and XRC flows to it, so
 * that later packets form new flows.
 */
void flows_end_qp(struct flows *flows, const uint8_t src[16], const uint8_t dst[16],
		  uint32_t dst_qpn);
void flows_free(struct flows *flows);

#endif
