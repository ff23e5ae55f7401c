/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Errors of requests and their consequences: the NAK to the peer, the completion of the current
 * receive WQE, the event, whether the QP goes to ERR.  A check returns an error and has no effect;
 * responder.c carries out the consequences in one place.
 */
#ifndef UROCE_ENGINE_BASE_NAK_TABLE_H
#define UROCE_ENGINE_BASE_NAK_TABLE_H

#include "aeth.h"
#include "types.h"

enum request_error {
	REQUEST_RIGHT,
	REQUEST_PSN_SEQUENCE,	/* packets before this one are missing (rule S4) */
	REQUEST_RNR,		/* no receive WQE (rule C6) */
	REQUEST_INVALID,	/* opcode sequence, service not enabled, resources, length */
	REQUEST_RECEIVE_LENGTH, /* the message is longer than the receive WQE (rule C18) */
	REQUEST_REMOTE_ACCESS,	/* R_Key, bounds or rights */
	REQUEST_RECEIVE_MEMORY, /* the memory of the receive WQE cannot be used */
	REQUEST_INVALIDATE, /* the key of a SEND with invalidate cannot be invalidated (rule S11) */
	REQUEST_ERRORS,
};

struct request_error_row {
	/*
	 * AETH syndrome of the NAK.  For REQUEST_RNR the responder adds the RNR NAK timer code.
	 * REQUEST_INVALIDATE has no NAK, but an ACK of the requests before it, to which the
	 * responder adds the credit code.
	 */
	uint8_t syndrome;
	bool fatal;			/* the QP goes to ERR */
	enum eng_status receive_status; /* status of the current receive WQE, if there is one */
	enum eng_event event;
};

extern const struct request_error_row request_error_rows[REQUEST_ERRORS];

#endif
