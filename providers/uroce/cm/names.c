/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Names of the enum values of this layer, for uroce-stat and messages. */
#include "cm.h"

#define NAME_OF(value, names, count) ((size_t)(value) < (count) ? (names)[value] : "?")

const char *cm_service_name(enum cm_service service)
{
	static const char *const names[CM_SERVICES] = { "RC", "UC", "XRC", "UD" };

	return NAME_OF(service, names, CM_SERVICES);
}

const char *cm_state_name(enum cm_state state)
{
	static const char *const names[CM_STATES] = {
		[CM_IDLE] = "IDLE",
		[CM_REQ_SENT] = "REQ_SENT",
		[CM_MRA_REQ_RCVD] = "MRA_REQ_RCVD",
		[CM_REP_RCVD] = "REP_RCVD",
		[CM_REQ_RCVD] = "REQ_RCVD",
		[CM_REP_SENT] = "REP_SENT",
		[CM_MRA_REP_RCVD] = "MRA_REP_RCVD",
		[CM_ESTABLISHED] = "ESTABLISHED",
		[CM_DREQ_SENT] = "DREQ_SENT",
		[CM_DREQ_RCVD] = "DREQ_RCVD",
		[CM_TIMEWAIT] = "TIMEWAIT",
		[CM_SIDR_REQ_SENT] = "SIDR_REQ_SENT",
		[CM_SIDR_REQ_RCVD] = "SIDR_REQ_RCVD",
		[CM_SIDR_REPLIED] = "SIDR_REPLIED",
		[CM_REJ_SENT] = "REJ_SENT",
	};

	return NAME_OF(state, names, CM_STATES);
}
