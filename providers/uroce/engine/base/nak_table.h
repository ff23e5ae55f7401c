/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What may be wrong with a request, and what follows: the NAK to the peer, the completion of the
 * receive request under way, the event, whether the QP goes to ERR.  A check returns an error and
 * does nothing else; responder.c turns it into its consequences in one place.
 */
#ifndef UROCE_ENGINE_BASE_NAK_TABLE_H
#define UROCE_ENGINE_BASE_NAK_TABLE_H

#include "aeth.h"
#include "types.h"

enum request_error {
	REQUEST_RIGHT,
	REQUEST_PSN_SEQUENCE,	/* a gap before this packet (rule S4) */
	REQUEST_RNR,		/* no receive WQE (rule C6) */
	REQUEST_INVALID,	/* opcode sequence, service not enabled, resources, length */
	REQUEST_RECEIVE_LENGTH, /* the message is longer than the receive WQE (rule C18) */
	REQUEST_REMOTE_ACCESS,	/* R_Key, bounds or rights */
	REQUEST_RECEIVE_MEMORY, /* the receive WQE's own memory cannot be used */
	REQUEST_INVALIDATE,	/* the key of a SEND cannot be invalidated (rule S11) */
	REQUEST_ERRORS,
};

struct request_error_row {
	/*
	 * AETH syndrome of the NAK.  The RNR timer code is added for REQUEST_RNR.
	 * REQUEST_INVALIDATE has no NAK, but an ACK of the requests before it, whose credits are
	 * added.
	 */
	uint8_t syndrome;
	bool fatal;			/* the QP goes to ERR */
	enum eng_status receive_status; /* of the receive WQE under way, if one was taken */
	enum eng_event event;
};

extern const struct request_error_row request_error_rows[REQUEST_ERRORS];

#endif
