/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * All that parsing and building need to know of an opcode, in eight bytes: one load finds it.
 * For use inside wire/ only; others ask opcode.h.
 */
#ifndef UROCE_WIRE_OPCODE_TABLE_H
#define UROCE_WIRE_OPCODE_TABLE_H

#include <stdint.h>

#include "opcode.h"

struct wire_op_facts {
	uint16_t headers;	/* set of enum wire_header */
	uint8_t header_length;	/* bytes with BTH and reserved ones; 0: the opcode is undefined */
	uint8_t family;		/* enum wire_family */
	uint8_t position;	/* enum wire_position */
	uint8_t reserved_bytes; /* counted in header_length, behind the extension headers */
};

extern const struct wire_op_facts wire_op_facts[256];

#endif
