/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Connections as described by the CM messages of a capture.  REQ and REP contain both QP numbers
 * and first PSNs, which the packets of a connection do not.
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
	bool accepted;	   /* a REP was seen, and passive is set */
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
 * Adds a UD packet to QP1, of whose payload length bytes were captured.  Returns the connection if
 * the packet is a new REQ or its first REP, else NULL.  The result is valid until the next call.
 */
const struct cm_connection *cm_log_add(struct cm_log *log, const uint8_t src[16],
				       const uint8_t dst[16], const uint8_t *payload,
				       size_t length);
void cm_log_free(struct cm_log *log);

#endif
