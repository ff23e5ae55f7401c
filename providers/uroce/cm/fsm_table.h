/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * State machine of a connection, as a table: the effect of a message, a timer or a call in each
 * state.  Documentation/connection-manager.md explains the differences from the Linux kernel's.
 */
#ifndef UROCE_CM_FSM_TABLE_H
#define UROCE_CM_FSM_TABLE_H

#include "cm.h"

enum cm_input {
	/* Messages that belong to this connection. */
	CM_IN_NEW_REQ,
	CM_IN_DUP_REQ, /* repetition of the REQ that created this connection */
	CM_IN_MRA_REQ,
	CM_IN_MRA_REP,
	CM_IN_REJ_REQ,	       /* REJ of our REQ */
	CM_IN_REJ_STALE_FIRST, /* first rejection of our REQ with MAD_REJECT_STALE */
	CM_IN_REJ,	       /* any other REJ */
	CM_IN_REP,
	CM_IN_RTU,
	CM_IN_DREQ,
	CM_IN_DREP,
	CM_IN_STALE, /* another REQ or REP has the peer's queue pair */
	CM_IN_NEW_SIDR_REQ,
	CM_IN_DUP_SIDR_REQ,
	CM_IN_SIDR_REP,
	/* Timers. */
	CM_IN_REPEAT, /* no reply yet */
	/*
	 * No reply in the maximum time; or end of the DREP delay, of timewait, or of the time to
	 * keep a reply.
	 */
	CM_IN_EXPIRED,
	/* Calls. */
	CM_IN_CONNECT,
	CM_IN_ACCEPT,
	CM_IN_SEND_RTU, /* cm_rtu(): the active side is ready */
	CM_IN_REJECT,
	CM_IN_DISCONNECT,
	CM_IN_ESTABLISHED,
	CM_IN_DESTROY,
	CM_IN_SIDR_REQUEST,
	CM_IN_SIDR_REPLY,
	CM_INPUTS,
};

enum cm_send {
	CM_SEND_NOTHING,
	CM_SEND_PREPARED, /* message built by the call, in conn->last_mad */
	CM_SEND_AGAIN,	  /* repetition of conn->last_mad */
	CM_SEND_DREQ,	  /* stored in conn->last_mad */
	CM_SEND_DREP,
	CM_SEND_REJ_TIMEOUT,  /* MAD_REJECT_TIMEOUT, in conn->last_mad */
	CM_SEND_REJ_CONSUMER, /* MAD_REJECT_CONSUMER, in conn->last_mad */
	CM_SEND_REJ_CLOSED,   /* MAD_REJECT_CONSUMER, for a repeated REQ of a closed connection */
	CM_SEND_SIDR_REJECT,  /* SIDR_REP with status 2, stored in conn->last_mad */
	CM_SENDS,
};

enum cm_timer {
	CM_TIMER_KEEP,
	CM_TIMER_STOP,
	CM_TIMER_REPEAT,   /* start: repeat the message until it is answered */
	CM_TIMER_NEXT,	   /* continue after a repetition */
	CM_TIMER_EXTEND,   /* extend the time by the service time of an MRA */
	CM_TIMER_DREP,	   /* time of the application to answer a DREQ */
	CM_TIMER_TIMEWAIT, /* duration of timewait, or of repeating a REJ */
	CM_TIMER_SIDR,	   /* time for which a SIDR_REP is kept for repeated requests */
	CM_TIMER_RESTART,  /* repeat the REQ with another id after a delay */
};

#define CM_NO_EVENT CM_EVENTS

struct cm_step {
	bool legal;
	bool repeated; /* the message is a repetition */
	enum cm_state next;
	enum cm_send send;
	enum cm_timer timer;
	enum cm_event_type event; /* or CM_NO_EVENT */
};

/* Returns NULL if there is none: the message is dropped, the call returns CM_BAD_STATE. */
const struct cm_step *cm_step_of(enum cm_state state, enum cm_input input);

#endif
