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

const char *cm_event_name(enum cm_event_type type)
{
	static const char *const names[CM_EVENTS] = {
		[CM_EVENT_REQ] = "REQ",
		[CM_EVENT_REP] = "REP",
		[CM_EVENT_ESTABLISHED] = "ESTABLISHED",
		[CM_EVENT_REJECTED] = "REJECTED",
		[CM_EVENT_UNREACHABLE] = "UNREACHABLE",
		[CM_EVENT_DISCONNECTED] = "DISCONNECTED",
		[CM_EVENT_TIMEWAIT_EXIT] = "TIMEWAIT_EXIT",
		[CM_EVENT_SIDR_REQ] = "SIDR_REQ",
		[CM_EVENT_SIDR_REP] = "SIDR_REP",
	};

	return NAME_OF(type, names, CM_EVENTS);
}

const char *cm_verdict_name(enum cm_verdict verdict)
{
	static const char *const names[CM_VERDICTS] = {
		[CM_HANDLED] = "handled",
		[CM_REPEATED] = "repeated",
		[CM_DROP_MAD] = "not a message of the connection manager",
		[CM_DROP_UNKNOWN_ID] = "unknown id",
		[CM_DROP_STATE] = "not in this state",
		[CM_DROP_QPN] = "wrong queue pair",
		[CM_REFUSED_SERVICE] = "no listener",
		[CM_REFUSED_MISMATCH] = "no listener for this address or service",
		[CM_REFUSED_BACKLOG] = "backlog full",
		[CM_REFUSED_STALE] = "stale connection",
		[CM_REFUSED_PATH] = "wrong GID or path MTU",
		[CM_REPLIED_UNKNOWN] = "unknown connection",
	};

	return NAME_OF(verdict, names, CM_VERDICTS);
}
