/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Conversion between packets and struct wire_packet.  Both directions go through the extension
 * headers in packet order and test one bit for each; the table entry of the opcode has their total
 * length, which is checked once.
 */
#include <assert.h>
#include <string.h>

#include "bytes.h"
#include "opcode_table.h"
#include "packet.h"

/* Fields of the BTH that only this file uses: bits of byte 1, and the congestion bits of byte 4. */
#define BTH_PAD_MASK 0x03
#define BTH_TVER_MASK 0x0f
#define BTH_CONGESTION (WIRE_FECN | WIRE_BECN)

#define XRCETH_BYTES 4
#define DETH_BYTES 8
#define FETH_BYTES 4
#define RETH_BYTES 16
#define ATOMICETH_BYTES 28
#define ATOMICACKETH_BYTES 8
#define IMMDT_BYTES 4
#define IETH_BYTES 4

/* Most packets have a RETH, an AETH or neither; the headers before and after these are rare. */
#define BEFORE_RETH (WIRE_HAS_XRCETH | WIRE_HAS_DETH | WIRE_HAS_FETH)
#define AFTER_AETH (WIRE_HAS_ATOMICACKETH | WIRE_HAS_IMMDT | WIRE_HAS_IETH)

#define PAYLOAD_ALIGNMENT 4

const char *wire_error_name(enum wire_error error)
{
	static const char *const names[] = {
		[WIRE_OK] = "ok",
		[WIRE_TOO_SHORT] = "too short",
		[WIRE_TOO_LONG] = "too long",
		[WIRE_BAD_VERSION] = "bad transport version",
		[WIRE_BAD_OPCODE] = "undefined opcode",
		[WIRE_BAD_LENGTH] = "length does not fit the opcode",
	};

	if ((unsigned int)error >= sizeof(names) / sizeof(names[0]))
		return "unknown";
	return names[error];
}

/* opcode and flags are the first two bytes, which must not be read again. */
static void parse_bth(const uint8_t *at, uint8_t opcode, uint8_t flags, struct wire_packet *packet)
{
	uint32_t second = wire_get_be32(at + 4);
	uint32_t third = wire_get_be32(at + 8);

	packet->opcode = opcode;
	packet->solicited = flags & WIRE_BTH_SE;
	packet->migrated = flags & WIRE_BTH_MIGREQ;
	packet->pad_count = flags >> WIRE_BTH_PAD_SHIFT & BTH_PAD_MASK;
	packet->version = flags & BTH_TVER_MASK;
	packet->pkey = wire_get_be16(at + 2);
	packet->congestion = at[4] & BTH_CONGESTION;
	packet->dest_qpn = second & WIRE_24BIT_MASK;
	packet->ack_request = third & WIRE_BTH_ACKREQ;
	packet->psn = third & WIRE_24BIT_MASK;
}

/* The caller has checked that all headers are in the packet. */
static void parse_extensions(const uint8_t *at, unsigned int headers, struct wire_packet *packet)
{
	uint32_t word;

	if (!(headers & WIRE_HAS_EXTENSIONS))
		return;
	if (headers & BEFORE_RETH) {
		if (headers & WIRE_HAS_XRCETH) {
			packet->xrc_srqn = wire_get_be32(at) & WIRE_24BIT_MASK;
			at += XRCETH_BYTES;
		}
		if (headers & WIRE_HAS_DETH) {
			packet->qkey = wire_get_be32(at);
			packet->src_qpn = wire_get_be32(at + 4) & WIRE_24BIT_MASK;
			at += DETH_BYTES;
		}
		if (headers & WIRE_HAS_FETH) {
			packet->flush = wire_get_be32(at);
			at += FETH_BYTES;
		}
	}
	if (headers & WIRE_HAS_RETH) {
		packet->va = wire_get_be64(at);
		packet->rkey = wire_get_be32(at + 8);
		packet->dma_length = wire_get_be32(at + 12);
		at += RETH_BYTES;
	}
	if (headers & WIRE_HAS_ATOMICETH) {
		packet->va = wire_get_be64(at);
		packet->rkey = wire_get_be32(at + 8);
		packet->swap_add = wire_get_be64(at + 12);
		packet->compare = wire_get_be64(at + 20);
		at += ATOMICETH_BYTES;
	}
	if (headers & WIRE_HAS_AETH) {
		word = wire_get_be32(at);
		packet->syndrome = (uint8_t)(word >> 24);
		packet->msn = word & WIRE_24BIT_MASK;
		at += WIRE_AETH_BYTES;
	}
	if (!(headers & AFTER_AETH))
		return;
	if (headers & WIRE_HAS_ATOMICACKETH) {
		packet->original = wire_get_be64(at);
		at += ATOMICACKETH_BYTES;
	}
	if (headers & WIRE_HAS_IMMDT) {
		packet->immediate = wire_get_be32(at);
		at += IMMDT_BYTES;
	}
	if (headers & WIRE_HAS_IETH)
		packet->invalidate_rkey = wire_get_be32(at);
}

/* rule S1, S15 */
inline enum wire_error wire_parse(const uint8_t *bytes, size_t length, struct wire_packet *packet)
{
	/* The peer may be able to modify the bytes: those that determine lengths are read once. */
	const volatile uint8_t *first = bytes;
	const struct wire_op_entry *entry;
	uint8_t opcode, flags;
	size_t body, pad;

	if (length < WIRE_BTH_BYTES + WIRE_ICRC_BYTES)
		return WIRE_TOO_SHORT;
	opcode = first[0];
	flags = first[1];
	if (flags & BTH_TVER_MASK)
		return WIRE_BAD_VERSION;
	entry = &wire_op_table[opcode];
	if (!entry->header_length)
		return WIRE_BAD_OPCODE;

	pad = flags >> WIRE_BTH_PAD_SHIFT & BTH_PAD_MASK;
	if (length < entry->header_length + pad + WIRE_ICRC_BYTES)
		return WIRE_TOO_SHORT;
	/* Payload and pad together; headers and ICRC are multiples of four. */
	body = length - entry->header_length - WIRE_ICRC_BYTES;
	if (body - pad > WIRE_MAX_MTU)
		return WIRE_TOO_LONG;
	if (body % PAYLOAD_ALIGNMENT)
		return WIRE_BAD_LENGTH;
	if (body && !(entry->headers & WIRE_HAS_PAYLOAD))
		return WIRE_BAD_LENGTH;

	wire_packet_clear(packet);
	parse_bth(bytes, opcode, flags, packet);
	parse_extensions(bytes + WIRE_BTH_BYTES, entry->headers, packet);
	packet->payload = bytes + entry->header_length;
	packet->payload_length = (uint32_t)(body - pad);
	return WIRE_OK;
}

static void build_bth(const struct wire_packet *packet, uint8_t *at)
{
	unsigned int flags =
		(packet->solicited ? WIRE_BTH_SE : 0u) | (packet->migrated ? WIRE_BTH_MIGREQ : 0u) |
		(packet->pad_count & (unsigned int)BTH_PAD_MASK) << WIRE_BTH_PAD_SHIFT |
		(packet->version & (unsigned int)BTH_TVER_MASK);

	wire_put_bth(at, packet->opcode, flags, packet->pkey,
		     (uint32_t)(packet->congestion & BTH_CONGESTION) << 24 |
			     (packet->dest_qpn & WIRE_24BIT_MASK),
		     (packet->ack_request ? WIRE_BTH_ACKREQ : 0) | (packet->psn & WIRE_24BIT_MASK));
}

unsigned int wire_build_extensions(const struct wire_packet *packet, uint8_t opcode, uint8_t *at)
{
	const unsigned int headers = wire_op_table[opcode].headers;
	const uint8_t *begin = at;

	if (headers & BEFORE_RETH) {
		if (headers & WIRE_HAS_XRCETH) {
			wire_put_be32(at, packet->xrc_srqn & WIRE_24BIT_MASK);
			at += XRCETH_BYTES;
		}
		if (headers & WIRE_HAS_DETH) {
			wire_put_be32(at, packet->qkey);
			wire_put_be32(at + 4, packet->src_qpn & WIRE_24BIT_MASK);
			at += DETH_BYTES;
		}
		if (headers & WIRE_HAS_FETH) {
			wire_put_be32(at, packet->flush);
			at += FETH_BYTES;
		}
	}
	if (headers & WIRE_HAS_RETH) {
		wire_put_be64(at, packet->va);
		wire_put_be32(at + 8, packet->rkey);
		wire_put_be32(at + 12, packet->dma_length);
		at += RETH_BYTES;
	}
	if (headers & WIRE_HAS_ATOMICETH) {
		wire_put_be64(at, packet->va);
		wire_put_be32(at + 8, packet->rkey);
		wire_put_be64(at + 12, packet->swap_add);
		wire_put_be64(at + 20, packet->compare);
		at += ATOMICETH_BYTES;
	}
	if (headers & WIRE_HAS_AETH) {
		wire_put_be32(at,
			      (uint32_t)packet->syndrome << 24 | (packet->msn & WIRE_24BIT_MASK));
		at += WIRE_AETH_BYTES;
	}
	if (!(headers & AFTER_AETH))
		return (unsigned int)(at - begin);
	if (headers & WIRE_HAS_ATOMICACKETH) {
		wire_put_be64(at, packet->original);
		at += ATOMICACKETH_BYTES;
	}
	if (headers & WIRE_HAS_IMMDT) {
		wire_put_be32(at, packet->immediate);
		at += IMMDT_BYTES;
	}
	if (headers & WIRE_HAS_IETH) {
		wire_put_be32(at, packet->invalidate_rkey);
		at += IETH_BYTES;
	}
	return (unsigned int)(at - begin);
}

unsigned int wire_build_headers(const struct wire_packet *packet, uint8_t *bytes)
{
	const struct wire_op_entry *entry = &wire_op_table[packet->opcode];

	assert(entry->header_length);
	build_bth(packet, bytes);
	wire_build_extensions(packet, packet->opcode, bytes + WIRE_BTH_BYTES);
	if (entry->reserved_bytes)
		memset(bytes + WIRE_BTH_BYTES, 0, entry->reserved_bytes);
	return entry->header_length;
}

/* ---- IP ---- */

enum {
	IPV4_VERSION_AND_LENGTH = 0x45,
	IPV4_DONT_FRAGMENT = 0x4000,
	IPV6_VERSION = 6,
	DEFAULT_HOP_LIMIT = 64,
};

/* RFC 1071, over a header whose checksum field is 0. */
static uint16_t ipv4_checksum(const uint8_t header[WIRE_IPV4_BYTES])
{
	uint32_t sum = 0;

	for (int i = 0; i < WIRE_IPV4_BYTES; i += 2)
		sum += wire_get_be16(header + i);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

void wire_put_ip(const struct wire_ip *ip, uint8_t *to)
{
	uint8_t hop_limit = ip->hop_limit ? ip->hop_limit : DEFAULT_HOP_LIMIT;
	uint16_t length = (uint16_t)(WIRE_UDP_BYTES + ip->payload_length);

	if (ip->ipv6) {
		wire_put_be32(to, (uint32_t)IPV6_VERSION << 28 | (uint32_t)ip->traffic_class << 20);
		wire_put_be16(to + 4, length);
		to[6] = WIRE_PROTOCOL_UDP;
		to[7] = hop_limit;
		memcpy(to + 8, ip->src, 16);
		memcpy(to + 24, ip->dst, 16);
		return;
	}
	to[0] = IPV4_VERSION_AND_LENGTH;
	to[1] = ip->traffic_class;
	wire_put_be16(to + 2, (uint16_t)(WIRE_IPV4_BYTES + length));
	wire_put_be16(to + 4, ip->id);
	wire_put_be16(to + 6, IPV4_DONT_FRAGMENT);
	to[8] = hop_limit;
	to[9] = WIRE_PROTOCOL_UDP;
	wire_put_be16(to + 10, 0);
	memcpy(to + 12, ip->src + 12, 4);
	memcpy(to + 16, ip->dst + 12, 4);
	wire_put_be16(to + 10, ipv4_checksum(to));
}
