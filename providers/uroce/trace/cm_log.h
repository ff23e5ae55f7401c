/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What the connection manager's messages in a capture say of connections: REQ and REP name both
 * queue pairs and first PSNs, which no packet of the connection itself does.
 */
#ifndef UROCE_TRACE_CM_LOG_H
#define UROCE_TRACE_CM_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cm/mad.h"

struct cm_side {
	uint8_t address[16];
	uint32_t id; /* communication id */
	uint32_t qpn;
	uint32_t psn; /* the first that this side expects to receive */
	uint8_t responder_resources, initiator_depth;
	uint8_t flow_control, srq; /* rule C19: what it says, not what decides */
};

struct cm_connection {
	struct cm_side active, passive;
	uint32_t mtu; /* bytes */
	uint64_t service_id;
	uint8_t transport; /* enum mad_transport */
	bool accepted;	   /* a REP was seen: passive is set */
	bool rejected;
	uint16_t reject_reason; /* enum mad_reject */
};

struct cm_log {
	struct cm_connection *items;
	size_t count, room;
	uint32_t messages[MAD_ATTRS]; /* by attribute; repeated ones count */
	uint32_t malformed;
};

/*
 * A UD packet to queue pair 1; payload is what was captured of it, length bytes.  Returns the
 * connection of which a REQ or the first REP has come, else NULL.
 */
const struct cm_connection *cm_log_add(struct cm_log *log, const uint8_t src[16],
				       const uint8_t dst[16], const uint8_t *payload,
				       size_t length);
void cm_log_free(struct cm_log *log);

#endif
