/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The ICRC of a packet whose IP and UDP headers nobody has seen: they are made up from the path,
 * as the kernel sends them, with the masked fields all ones.
 *
 * How wire_icrc_check() solves for the IPv4 identification.  Read bits as polynomials over GF(2),
 * P the CRC's polynomial.  Two messages of the same length whose difference is the polynomial
 * d (degree below 16) in the two identification bytes and zero elsewhere have CRCs that differ by
 * d * x^(8n + 32) mod P, where n bytes follow the identification.  x has an inverse modulo P, so
 * the CRC difference times x^-(8n + 32) is d itself; when that has a degree of 16 or more, no
 * identification makes the CRC right.
 */
#include <isa-l/crc.h>

#include "bytes.h"
#include "icrc.h"
#include "packet.h"

#define LRH_BYTES 8
#define IPV4_BYTES 20
#define IPV6_BYTES 40
#define UDP_BYTES 8
#define PSEUDO_MAX_BYTES (LRH_BYTES + IPV6_BYTES + UDP_BYTES)

#define IPV4_MAX_BYTES 65535
#define IPV4_ID_OFFSET 4
#define IPV4_AFTER_ID (IPV4_BYTES - IPV4_ID_OFFSET - 2)
#define GID_IPV4_OFFSET 12

#define PROTOCOL_UDP 17
/* Version 4, five words, TOS masked. */
#define IPV4_FIRST_WORD 0x45ff0000u
/* Don't Fragment, offset 0. */
#define IPV4_FLAGS 0x4000
/* Masked TTL, protocol UDP, masked checksum. */
#define IPV4_THIRD_WORD (0xff00ffffu | PROTOCOL_UDP << 16)
/* Version 6, traffic class and flow label masked. */
#define IPV6_FIRST_WORD 0x6fffffffu
/* Next header UDP, masked hop limit; the payload length is in the upper half. */
#define IPV6_LENGTH_WORD (PROTOCOL_UDP << 8 | 0xffu)
#define MASKED_CHECKSUM 0xffff
/* FECN, BECN and the reserved bits beside them. */
#define BTH_MASKED_BYTE 4

/*
 * This much of the packet is put behind the made-up headers and goes through the CRC in one call:
 * every small packet altogether.
 */
#define INLINE_BYTES 96

static size_t put_ip_and_udp(const struct wire_path *path, uint16_t ip_id, uint32_t length,
			     uint8_t *at)
{
	size_t ip_bytes;
	uint8_t *udp;

	/* The place of the LRH, which RoCEv2 does not have. */
	memset(at, 0xff, LRH_BYTES);
	at += LRH_BYTES;
	length += UDP_BYTES;
	if (path->ipv6) {
		ip_bytes = IPV6_BYTES;
		wire_put_be32(at, IPV6_FIRST_WORD);
		wire_put_be32(at + 4, length << 16 | IPV6_LENGTH_WORD);
		memcpy(at + 8, path->src, 16);
		memcpy(at + 24, path->dst, 16);
	} else {
		ip_bytes = IPV4_BYTES;
		wire_put_be32(at, IPV4_FIRST_WORD | ((length + IPV4_BYTES) & 0xffff));
		wire_put_be32(at + 4, (uint32_t)ip_id << 16 | IPV4_FLAGS);
		wire_put_be32(at + 8, IPV4_THIRD_WORD);
		memcpy(at + 12, path->src + GID_IPV4_OFFSET, 4);
		memcpy(at + 16, path->dst + GID_IPV4_OFFSET, 4);
	}
	udp = at + ip_bytes;
	wire_put_be32(udp, (uint32_t)path->src_port << 16 | WIRE_UDP_PORT);
	wire_put_be32(udp + 4, length << 16 | MASKED_CHECKSUM);
	return LRH_BYTES + ip_bytes + UDP_BYTES;
}

/* rule S14 */
uint32_t wire_icrc_begin(const struct wire_path *path, uint16_t ip_id, uint32_t udp_payload_length,
			 const uint8_t *header, size_t header_length)
{
	uint8_t buffer[PSEUDO_MAX_BYTES + INLINE_BYTES];
	size_t pseudo = put_ip_and_udp(path, ip_id, udp_payload_length, buffer);
	size_t copied = header_length < INLINE_BYTES ? header_length : INLINE_BYTES;
	uint32_t state;

	memcpy(buffer + pseudo, header, copied);
	buffer[pseudo + BTH_MASKED_BYTE] = 0xff;
	/* ISA-L inverts at start and end, so that a result is also the state to go on from. */
	state = crc32_gzip_refl(0, buffer, pseudo + copied);
	if (header_length > copied)
		state = crc32_gzip_refl(state, header + copied, header_length - copied);
	return state;
}

uint32_t wire_icrc_continue(uint32_t state, const uint8_t *bytes, size_t length)
{
	return crc32_gzip_refl(state, bytes, length);
}

void wire_icrc_finish(uint32_t state, uint8_t *out)
{
	wire_put_le32(out, state);
}

void wire_icrc_put(const struct wire_path *path, uint16_t ip_id, uint8_t *packet, size_t length)
{
	size_t covered = length - WIRE_ICRC_BYTES;

	wire_icrc_finish(wire_icrc_begin(path, ip_id, (uint32_t)length, packet, covered),
			 packet + covered);
}

/*
 * The product of two polynomials modulo P.  As in the CRC, bits are reflected: bit 31 is x^0.
 */
static uint32_t multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;
	int bit;

	for (bit = 0; bit < 32; bit++) {
		/* All ones or all zeros instead of branches that cannot be predicted. */
		product ^= b & (0u - (a >> 31));
		b = (b >> 1) ^ (0xedb88320u & (0u - (b & 1)));
		a <<= 1;
	}
	return product;
}

/* Take back n zero bytes: state * x^-8n mod P, n below 2^17. */
static uint32_t unshift(uint32_t state, uint32_t n)
{
	/* x^(-8 * 2^k) mod P, each the square of the one before. */
	static const uint32_t powers[17] = {
		0x6567cb95, 0xd7125358, 0x5b358fd3, 0x2e9bb40b, 0x12a59a49, 0x8df9403d,
		0x5139de12, 0xba340226, 0x29c45641, 0x12fbc105, 0xecd30c55, 0x3755ebd8,
		0x24ee460c, 0x23783fcf, 0x479933fc, 0xa39442a5, 0x9ea0056d,
	};
	const uint32_t *power = powers;

	for (; n; n >>= 1, power++)
		if (n & 1)
			state = multiply(state, *power);
	return state;
}

enum wire_icrc_verdict wire_icrc_check(const struct wire_path *path, uint16_t *ip_id,
				       const uint8_t *packet, size_t length)
{
	size_t covered = length - WIRE_ICRC_BYTES;
	uint32_t difference, after_id;

	if (length < WIRE_BTH_BYTES + WIRE_ICRC_BYTES ||
	    length > IPV4_MAX_BYTES - IPV4_BYTES - UDP_BYTES)
		return WIRE_ICRC_WRONG;
	difference = wire_icrc_begin(path, *ip_id, (uint32_t)length, packet, covered) ^
		     wire_get_le32(packet + covered);
	if (!difference)
		return WIRE_ICRC_RIGHT;
	if (path->ipv6)
		return WIRE_ICRC_WRONG;

	after_id = (uint32_t)(IPV4_AFTER_ID + UDP_BYTES + covered);
	difference = unshift(difference, after_id + 4);
	/* Bits 16..23 hold the first byte of d, 24..31 the second; the others are x^16 and up. */
	if (difference & 0xffff)
		return WIRE_ICRC_WRONG;
	*ip_id ^= (uint16_t)(difference >> 24 | (difference >> 8 & 0xff00));
	return WIRE_ICRC_SOLVED;
}
