/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The rows of the opcode table, and the tables indexed by opcode that are generated from them.
 * Rows are grouped by the services that have them.  There is no row for RESYNC, which only RD has;
 * FLUSH and ATOMIC WRITE exist on RC only.
 */
#include <stddef.h>

#include "opcode.h"
#include "opcode_table.h"
#include "packet.h"

#define CNP_RESERVED_BYTES 16

#define NO_HEADER 0
#define IMMDT WIRE_HAS_IMMDT
#define IETH WIRE_HAS_IETH
#define RETH WIRE_HAS_RETH
#define AETH WIRE_HAS_AETH
#define FETH WIRE_HAS_FETH
#define ATOMICETH WIRE_HAS_ATOMICETH
#define ATOMICACKETH WIRE_HAS_ATOMICACKETH
#define PAYLOAD WIRE_HAS_PAYLOAD

/* clang-format off */
/* operation, family, position, extension headers and payload */
#define DATAGRAM_ROWS(X, service) /* RC, UC, UD, XRC */                                        \
	X(service, SEND_ONLY,            SEND,          ONLY,   PAYLOAD)                       \
	X(service, SEND_ONLY_IMM,        SEND,          ONLY,   IMMDT | PAYLOAD)

#define UNRELIABLE_ROWS(X, service) /* RC, UC, XRC */                                          \
	X(service, SEND_FIRST,           SEND,          FIRST,  PAYLOAD)                       \
	X(service, SEND_MIDDLE,          SEND,          MIDDLE, PAYLOAD)                       \
	X(service, SEND_LAST,            SEND,          LAST,   PAYLOAD)                       \
	X(service, SEND_LAST_IMM,        SEND,          LAST,   IMMDT | PAYLOAD)               \
	X(service, WRITE_FIRST,          WRITE,         FIRST,  RETH | PAYLOAD)                \
	X(service, WRITE_MIDDLE,         WRITE,         MIDDLE, PAYLOAD)                       \
	X(service, WRITE_LAST,           WRITE,         LAST,   PAYLOAD)                       \
	X(service, WRITE_LAST_IMM,       WRITE,         LAST,   IMMDT | PAYLOAD)               \
	X(service, WRITE_ONLY,           WRITE,         ONLY,   RETH | PAYLOAD)                \
	X(service, WRITE_ONLY_IMM,       WRITE,         ONLY,   RETH | IMMDT | PAYLOAD)

#define RELIABLE_ROWS(X, service) /* RC, XRC */                                                \
	X(service, READ_REQUEST,         READ,          ONLY,   RETH)                          \
	X(service, READ_RESPONSE_FIRST,  READ_RESPONSE, FIRST,  AETH | PAYLOAD)                \
	X(service, READ_RESPONSE_MIDDLE, READ_RESPONSE, MIDDLE, PAYLOAD)                       \
	X(service, READ_RESPONSE_LAST,   READ_RESPONSE, LAST,   AETH | PAYLOAD)                \
	X(service, READ_RESPONSE_ONLY,   READ_RESPONSE, ONLY,   AETH | PAYLOAD)                \
	X(service, ACKNOWLEDGE,          ACK,           ONLY,   AETH)                          \
	X(service, ATOMIC_ACKNOWLEDGE,   ATOMIC_ACK,    ONLY,   AETH | ATOMICACKETH)           \
	X(service, COMPARE_SWAP,         ATOMIC,        ONLY,   ATOMICETH)                     \
	X(service, FETCH_ADD,            ATOMIC,        ONLY,   ATOMICETH)                     \
	X(service, SEND_LAST_INVALIDATE, SEND,          LAST,   IETH | PAYLOAD)                \
	X(service, SEND_ONLY_INVALIDATE, SEND,          ONLY,   IETH | PAYLOAD)

#define PERSISTENCE_ROWS(X, service) /* RC */                                                  \
	X(service, FLUSH,                FLUSH,         ONLY,   FETH | RETH)                   \
	X(service, ATOMIC_WRITE,         ATOMIC_WRITE,  ONLY,   RETH | PAYLOAD)

#define ALL_ROWS(X)                                                                            \
	DATAGRAM_ROWS(X, RC) UNRELIABLE_ROWS(X, RC) RELIABLE_ROWS(X, RC)                       \
	PERSISTENCE_ROWS(X, RC)                                                                \
	DATAGRAM_ROWS(X, UC) UNRELIABLE_ROWS(X, UC)                                            \
	DATAGRAM_ROWS(X, UD)                                                                   \
	DATAGRAM_ROWS(X, XRC) UNRELIABLE_ROWS(X, XRC) RELIABLE_ROWS(X, XRC)
/* clang-format on */

/* Headers that a service adds before those of the row; XRC adds one in requests only. */
#define RC_ADDS(family) NO_HEADER
#define UC_ADDS(family) NO_HEADER
#define UD_ADDS(family) WIRE_HAS_DETH
#define XRC_ADDS(family) \
	(WIRE_FAMILY_##family < WIRE_FAMILY_READ_RESPONSE ? WIRE_HAS_XRCETH : NO_HEADER)

/* Number of bytes that a header adds if set contains it. */
#define PART(set, header, bytes) (((set) & (WIRE_HAS_##header)) ? (bytes) : 0)
#define HEADER_BYTES(set)                                                                  \
	(WIRE_BTH_BYTES + PART(set, XRCETH, 4) + PART(set, DETH, 8) + PART(set, FETH, 4) + \
	 PART(set, RETH, 16) + PART(set, ATOMICETH, 28) + PART(set, AETH, 4) +             \
	 PART(set, ATOMICACKETH, 8) + PART(set, IMMDT, 4) + PART(set, IETH, 4))

#define ENTRY(service, op, fam, pos, set)                                   \
	[WIRE_##service | WIRE_##op] = {                                    \
		.headers = (uint16_t)((set) | service##_ADDS(fam)),         \
		.header_length = HEADER_BYTES((set) | service##_ADDS(fam)), \
		.family = WIRE_FAMILY_##fam,                                \
		.position = WIRE_##pos,                                     \
	},

/* clang-format off */
const struct wire_op_entry wire_op_table[256] = {
	ALL_ROWS(ENTRY)
	[WIRE_CNP_OPCODE] = {
		.header_length = WIRE_BTH_BYTES + CNP_RESERVED_BYTES,
		.family = WIRE_FAMILY_NONE,
		.position = WIRE_ONLY,
		.reserved_bytes = CNP_RESERVED_BYTES,
	},
};

#define NAME(service, op, fam, pos, set) [WIRE_##service | WIRE_##op] = #service " " #op,

static const char *const names[256] = {
	ALL_ROWS(NAME)
	[WIRE_CNP_OPCODE] = "CNP",
};
/* clang-format on */

enum wire_family wire_op_family(uint8_t opcode)
{
	return (enum wire_family)wire_op_table[opcode].family;
}

enum wire_position wire_op_position(uint8_t opcode)
{
	return (enum wire_position)wire_op_table[opcode].position;
}

uint16_t wire_op_headers(uint8_t opcode)
{
	return wire_op_table[opcode].headers;
}

unsigned int wire_op_header_length(uint8_t opcode)
{
	return wire_op_table[opcode].header_length;
}

const char *wire_op_name(uint8_t opcode)
{
	return names[opcode] ? names[opcode] : "unknown";
}

bool wire_op_is_request(uint8_t opcode)
{
	uint8_t family = wire_op_table[opcode].family;

	return family != WIRE_FAMILY_NONE && family < WIRE_FAMILY_READ_RESPONSE;
}

bool wire_op_is_response(uint8_t opcode)
{
	return wire_op_table[opcode].family >= WIRE_FAMILY_READ_RESPONSE;
}

/* rule S5: a message continues in the same service and family until its last packet. */
bool wire_op_may_follow(int previous, uint8_t next)
{
	const struct wire_op_entry *to = &wire_op_table[next];
	const struct wire_op_entry *from;

	if (!wire_op_is_request(next))
		return false;
	if (previous < 0)
		return to->position & (WIRE_FIRST | WIRE_ONLY);

	from = &wire_op_table[previous & 0xff];
	if (!wire_op_is_request((uint8_t)previous) || ((previous ^ next) & WIRE_SERVICE_MASK))
		return false;
	if (from->position & (WIRE_LAST | WIRE_ONLY))
		return to->position & (WIRE_FIRST | WIRE_ONLY);
	return to->family == from->family && (to->position & (WIRE_MIDDLE | WIRE_LAST));
}
