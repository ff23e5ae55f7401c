/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What may be wrong with a request, and what follows: the NAK to the peer, the completion of the
 * receive request under way, the event, whether the QP goes to ERR.  A check returns a fault and
 * does nothing else; responder.c turns it into its consequences in one place.
 */
#ifndef UROCE_ENGINE_FAULT_H
#define UROCE_ENGINE_FAULT_H

#include "codes.h"
#include "types.h"

enum fault {
	FAULT_NONE,
	FAULT_PSN_SEQUENCE,    /* a gap before this packet (rule S4) */
	FAULT_RNR,	       /* no receive WQE (rule C6) */
	FAULT_INVALID_REQUEST, /* opcode sequence, service not enabled, resources, length */
	FAULT_RECEIVE_LENGTH,  /* the message is longer than the receive WQE (rule C18) */
	FAULT_REMOTE_ACCESS,   /* R_Key, bounds or rights */
	FAULT_RECEIVE_MEMORY,  /* the receive WQE's own memory cannot be used */
	FAULT_COUNT,
};

struct fault_row {
	const char *name;
	uint8_t syndrome;		/* of the NAK; the RNR timer code is added for FAULT_RNR */
	bool fatal;			/* the QP goes to ERR */
	enum eng_status receive_status; /* of the receive WQE under way, if one was taken */
	enum eng_event event;
};

extern const struct fault_row fault_rows[FAULT_COUNT];

#endif
