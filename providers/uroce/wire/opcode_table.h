/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * All that parsing and building need to know about an opcode, in eight bytes, so that one load gets
 * it.  Private to wire/; other layers use opcode.h.
 */
#ifndef UROCE_WIRE_OPCODE_TABLE_H
#define UROCE_WIRE_OPCODE_TABLE_H

#include <stdint.h>

#include "opcode.h"

struct wire_op_entry {
	uint16_t headers;	/* set of enum wire_header */
	uint8_t header_length;	/* bytes, with BTH and reserved bytes; 0: the opcode is undefined */
	uint8_t family;		/* enum wire_family */
	uint8_t position;	/* enum wire_position */
	uint8_t reserved_bytes; /* reserved bytes after the headers, included in header_length */
};

extern const struct wire_op_entry wire_op_table[256];

#endif
