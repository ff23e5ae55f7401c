/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * BTH opcodes: service in bits 7..5, operation in bits 4..0.  A table has one row per operation,
 * with its family, its position in the message and its extension headers.  All functions about
 * opcodes use that table (IBA volume 1, tables "OpCode field" and "packet fields").
 */
#ifndef UROCE_WIRE_OPCODE_H
#define UROCE_WIRE_OPCODE_H

#include <stdbool.h>
#include <stdint.h>

#define WIRE_SERVICE_MASK 0xe0
#define WIRE_OPERATION_MASK 0x1f

/*
 * Services and operations.  One type for both, because compilers warn if constants of two enums are
 * combined by |.
 */
enum wire_opcode {
	/* Services. */
	WIRE_RC = 0x00,
	WIRE_UC = 0x20,
	WIRE_UD = 0x60,
	WIRE_CNP = 0x80,
	WIRE_XRC = 0xa0,
	/* Operations. */
	WIRE_SEND_FIRST = 0x00,
	WIRE_SEND_MIDDLE = 0x01,
	WIRE_SEND_LAST = 0x02,
	WIRE_SEND_LAST_IMM = 0x03,
	WIRE_SEND_ONLY = 0x04,
	WIRE_SEND_ONLY_IMM = 0x05,
	WIRE_WRITE_FIRST = 0x06,
	WIRE_WRITE_MIDDLE = 0x07,
	WIRE_WRITE_LAST = 0x08,
	WIRE_WRITE_LAST_IMM = 0x09,
	WIRE_WRITE_ONLY = 0x0a,
	WIRE_WRITE_ONLY_IMM = 0x0b,
	WIRE_READ_REQUEST = 0x0c,
	WIRE_READ_RESPONSE_FIRST = 0x0d,
	WIRE_READ_RESPONSE_MIDDLE = 0x0e,
	WIRE_READ_RESPONSE_LAST = 0x0f,
	WIRE_READ_RESPONSE_ONLY = 0x10,
	WIRE_ACKNOWLEDGE = 0x11,
	WIRE_ATOMIC_ACKNOWLEDGE = 0x12,
	WIRE_COMPARE_SWAP = 0x13,
	WIRE_FETCH_ADD = 0x14,
	WIRE_RESYNC = 0x15,
	WIRE_SEND_LAST_INVALIDATE = 0x16,
	WIRE_SEND_ONLY_INVALIDATE = 0x17,
	WIRE_FLUSH = 0x1c,
	WIRE_ATOMIC_WRITE = 0x1d,
};

/* Congestion notification packet (CNP, annex A17): neither request nor response. */
#define WIRE_CNP_OPCODE (WIRE_CNP | 0x01)

/* Kind of message that a packet belongs to. */
enum wire_family {
	WIRE_FAMILY_NONE, /* undefined opcode, or CNP */
	WIRE_FAMILY_SEND,
	WIRE_FAMILY_WRITE,
	WIRE_FAMILY_READ,
	WIRE_FAMILY_ATOMIC,
	WIRE_FAMILY_FLUSH,
	WIRE_FAMILY_ATOMIC_WRITE,
	WIRE_FAMILY_READ_RESPONSE,
	WIRE_FAMILY_ACK,
	WIRE_FAMILY_ATOMIC_ACK,
};

enum wire_position {
	WIRE_ONLY = 1,
	WIRE_FIRST = 2,
	WIRE_MIDDLE = 4,
	WIRE_LAST = 8,
};

/* Extension headers, in packet order, except that FETH precedes RETH. */
enum wire_header {
	WIRE_HAS_XRCETH = 0x001,
	WIRE_HAS_DETH = 0x002,
	WIRE_HAS_RETH = 0x004,
	WIRE_HAS_ATOMICETH = 0x008,
	WIRE_HAS_AETH = 0x010,
	WIRE_HAS_ATOMICACKETH = 0x020,
	WIRE_HAS_IMMDT = 0x040,
	WIRE_HAS_IETH = 0x080,
	WIRE_HAS_FETH = 0x100,
	WIRE_HAS_PAYLOAD = 0x200,
	WIRE_HAS_EXTENSIONS = 0x1ff, /* any header after the BTH */
};

/* Return the family and the position of an opcode, which must be defined. */
enum wire_family wire_op_family(uint8_t opcode);
enum wire_position wire_op_position(uint8_t opcode);

/* Returns the extension headers of a packet with this opcode; 0 if undefined. */
uint16_t wire_op_headers(uint8_t opcode);

/*
 * Returns the number of bytes of BTH and extension headers, for a CNP with its 16 reserved bytes; 0
 * if the opcode is undefined.
 */
unsigned int wire_op_header_length(uint8_t opcode);

/* Returns a name such as "RC SEND_FIRST", or "unknown" if undefined.  For tools and tests. */
const char *wire_op_name(uint8_t opcode);

bool wire_op_is_request(uint8_t opcode);
bool wire_op_is_response(uint8_t opcode);

/*
 * Returns true if a request packet with opcode next may directly follow one with opcode previous
 * (rule S5).  previous is -1 if no message is in progress.
 */
bool wire_op_may_follow(int previous, uint8_t next);

#endif
