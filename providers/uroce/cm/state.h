/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The state machine of a connection as one table: what a message, a timer or a call does in each
 * state.  Where it differs from the Linux kernel's, Documentation/connection-manager.md says why.
 */
#ifndef UROCE_CM_STATE_H
#define UROCE_CM_STATE_H

#include "cm.h"

enum cm_input {
	/* Messages, already found to belong to this connection. */
	CM_IN_NEW_REQ,
	CM_IN_SAME_REQ, /* the REQ that made this connection, again */
	CM_IN_MRA_REQ,
	CM_IN_MRA_REP,
	CM_IN_REJ_REQ,	       /* a REJ that answers our REQ */
	CM_IN_REJ_STALE_FIRST, /* the same because of an older connection, for the first time */
	CM_IN_REJ,	       /* any other REJ */
	CM_IN_REP,
	CM_IN_RTU,
	CM_IN_DREQ,
	CM_IN_DREP,
	CM_IN_STALE, /* the peer's queue pair was seen in a new connection */
	CM_IN_NEW_SIDR_REQ,
	CM_IN_SAME_SIDR_REQ,
	CM_IN_SIDR_REP,
	/* Timers. */
	CM_IN_REPEAT, /* no answer yet */
	CM_IN_END,    /* no answer in the whole time; or the grace time or timewait is over */
	/* Calls. */
	CM_IN_CONNECT,
	CM_IN_ACCEPT,
	CM_IN_READY, /* cm_rtu() */
	CM_IN_REJECT,
	CM_IN_DISCONNECT,
	CM_IN_ESTABLISHED,
	CM_IN_DESTROY,
	CM_IN_SIDR_REQUEST,
	CM_IN_SIDR_REPLY,
	CM_INPUTS,
};
const char *cm_input_name(enum cm_input input);

enum cm_send {
	CM_SEND_NOTHING,
	CM_SEND_PREPARED, /* what the call has made; it is kept for repetitions */
	CM_SEND_AGAIN,	  /* what was kept */
	CM_SEND_DREQ,	  /* kept */
	CM_SEND_DREP,
	CM_SEND_TIMED_OUT,   /* REJ 4, kept */
	CM_SEND_CONSUMER,    /* REJ 28, kept */
	CM_SEND_NOT_AGAIN,   /* REJ 28 for a REQ whose connection is closed already */
	CM_SEND_SIDR_REJECT, /* SIDR_REP with status 2, kept */
	CM_SENDS,
};

enum cm_timer {
	CM_TIMER_KEEP,
	CM_TIMER_STOP,
	CM_TIMER_REPEAT,  /* repeat what was sent until it is answered */
	CM_TIMER_NEXT,	  /* it has been repeated */
	CM_TIMER_STRETCH, /* the peer needs longer */
	CM_TIMER_GRACE,	  /* the application's time to answer a DREQ */
	CM_TIMER_WAIT,	  /* timewait */
	CM_TIMER_SIDR,	  /* the time in which a SIDR_REQ may be repeated */
	CM_TIMER_ANEW,	  /* the same request with another id, after a pause */
};

#define CM_NO_EVENT CM_EVENTS

struct cm_step {
	bool legal;
	bool repeated; /* it was known already */
	enum cm_state next;
	enum cm_send send;
	enum cm_timer timer;
	enum cm_event_type event; /* or CM_NO_EVENT */
};

/* The step, or NULL: the message is dropped, the call refused. */
const struct cm_step *cm_step_of(enum cm_state state, enum cm_input input);

#endif
