/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Properties of each operation for the requester, as a table: its packets, whether it needs a
 * receive WQE at the peer, and its response.
 */
#ifndef UROCE_ENGINE_BASE_OP_H
#define UROCE_ENGINE_BASE_OP_H

#include "types.h"
#include "wire/opcode.h"

enum op_response {
	OP_ACKED,	    /* completed by an ACK of its last packet */
	OP_READ_RESPONSE,   /* completed by READ responses only (rule S8) */
	OP_ATOMIC_RESPONSE, /* completed by an Atomic Acknowledge only */
	OP_LOCAL,	    /* not sent */
};

struct op_row {
	bool needs_receive;		   /* uses a receive WQE at the peer (rule C13) */
	bool carries_payload;		   /* the request's packets carry the message */
	uint8_t response;		   /* enum op_response; a row has eight bytes */
	bool any_length;		   /* its messages may have several packets */
	uint8_t first, middle, last, only; /* enum wire_opcode, without the service */
};

extern const struct op_row op_rows[ENG_OPS];

static inline const struct op_row *op_row(uint8_t op)
{
	return &op_rows[op];
}

static inline bool op_is_local(uint8_t op)
{
	return op_rows[op].response == OP_LOCAL;
}

/*
 * Returns true for READ, Atomics, ATOMIC_WRITE and FLUSH: limited by max_rd_atomic, and fences wait
 * for them (rules C16, S12).
 */
static inline bool op_is_read_or_atomic(uint8_t op)
{
	return op_rows[op].response == OP_READ_RESPONSE ||
	       op_rows[op].response == OP_ATOMIC_RESPONSE;
}

#endif
