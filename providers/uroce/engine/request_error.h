/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What may be wrong with a request, and what follows: the NAK to the peer, the completion of the
 * receive request under way, the event, whether the QP goes to ERR.  A check returns an error and
 * does nothing else; responder.c turns it into its consequences in one place.
 */
#ifndef UROCE_ENGINE_REQUEST_ERROR_H
#define UROCE_ENGINE_REQUEST_ERROR_H

#include "codes.h"
#include "types.h"

enum request_error {
	REQUEST_RIGHT,
	REQUEST_PSN_SEQUENCE,	/* a gap before this packet (rule S4) */
	REQUEST_RNR,		/* no receive WQE (rule C6) */
	REQUEST_INVALID,	/* opcode sequence, service not enabled, resources, length */
	REQUEST_RECEIVE_LENGTH, /* the message is longer than the receive WQE (rule C18) */
	REQUEST_REMOTE_ACCESS,	/* R_Key, bounds or rights */
	REQUEST_RECEIVE_MEMORY, /* the receive WQE's own memory cannot be used */
	REQUEST_ERRORS,
};

struct request_error_row {
	uint8_t syndrome; /* of the NAK; the RNR timer code is added for REQUEST_RNR */
	bool fatal;	  /* the QP goes to ERR */
	enum eng_status receive_status; /* of the receive WQE under way, if one was taken */
	enum eng_event event;
};

extern const struct request_error_row request_error_rows[REQUEST_ERRORS];

#endif
