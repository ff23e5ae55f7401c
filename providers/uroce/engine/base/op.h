/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What the requester has to know about each operation, as a table: which packets it makes, whether
 * it needs a receive WQE at the peer, what answers it.
 */
#ifndef UROCE_ENGINE_BASE_OP_H
#define UROCE_ENGINE_BASE_OP_H

#include "types.h"
#include "wire/opcode.h"

enum op_response {
	OP_ACKED,	    /* complete by an ACK of its last packet */
	OP_READ_RESPONSE,   /* complete by READ responses only (rule S8) */
	OP_ATOMIC_RESPONSE, /* complete by an Atomic Acknowledge only */
	OP_LOCAL,	    /* never leaves the adapter */
};

struct op_row {
	bool needs_receive;		   /* takes a receive WQE at the peer (rule C13) */
	bool carries_payload;		   /* the request's packets carry the message */
	uint8_t answer;			   /* enum op_response; a row has eight bytes */
	bool any_length;		   /* a message of it may take several packets */
	uint8_t first, middle, last, only; /* enum wire_opcode, without the service */
};

extern const struct op_row op_rows[ENG_OPS];

static inline const struct op_row *op_row(uint8_t op)
{
	return &op_rows[op];
}

static inline bool op_is_local(uint8_t op)
{
	return op_rows[op].answer == OP_LOCAL;
}

/* READ and Atomics: limited by max_rd_atomic, waited for by fences (rules C16, S12). */
static inline bool op_is_read_or_atomic(uint8_t op)
{
	return op_rows[op].answer == OP_READ_RESPONSE || op_rows[op].answer == OP_ATOMIC_RESPONSE;
}

#endif
