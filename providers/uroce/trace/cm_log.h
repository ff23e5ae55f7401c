/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Connections according to the CM messages of a capture.  REQ and REP contain the QP numbers of
 * both ends and the first PSNs, while a packet contains only the number of its destination QP: so
 * they prove which two flows are a connection (flow_pair.h).
 */
#ifndef UROCE_TRACE_CM_LOG_H
#define UROCE_TRACE_CM_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cm/msg/mad.h"

struct cm_side {
	uint8_t address[16];
	uint32_t id; /* communication ID */
	uint32_t qpn;
	uint32_t psn; /* first PSN that this side expects to receive */
	uint8_t responder_resources, initiator_depth;
	uint8_t flow_control, srq; /* End-to-End Flow Control bit (rule C19) and SRQ bit */
};

struct cm_connection {
	struct cm_side active, passive;
	uint32_t mtu; /* path MTU in bytes; 0: invalid */
	uint64_t service_id;
	uint8_t transport; /* enum mad_transport */
	bool accepted;	   /* a REP was captured, so passive is complete */
	bool rejected;
	uint16_t reject_reason; /* enum mad_reject */
};

struct cm_log {
	struct cm_connection *items;
	size_t count, room;
	uint32_t messages[MAD_ATTRS]; /* number of messages by attribute, including retries */
	uint32_t malformed;
};

/*
 * Adds the MAD in a UD packet to queue pair 1; length is the number of captured bytes of the
 * payload.  Returns the connection if the MAD is a new REQ or its first REP, else NULL.  The
 * pointer is valid until the next call.
 */
const struct cm_connection *cm_log_add(struct cm_log *log, const uint8_t src[16],
				       const uint8_t dst[16], const uint8_t *payload,
				       size_t length);
void cm_log_free(struct cm_log *log);

#endif
