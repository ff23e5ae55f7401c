/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The ICRC of a packet whose IP and UDP headers the kernel makes: they are reconstructed from the
 * path, with the masked fields all ones.
 *
 * How wire_icrc_check() solves for the IPv4 identification.  Read bits as polynomials over GF(2),
 * P the CRC's polynomial.  Two messages of the same length whose difference is the polynomial d
 * (degree below 16) in the two identification bytes and zero elsewhere have CRCs that differ by d
 * * x^(8n + 32) mod P, where n bytes follow the identification.  x has an inverse modulo P, so the
 * CRC difference times x^-(8n + 32) is d itself; when that has a degree of 16 or more, no
 * identification makes the CRC right.
 */
#include <assert.h>
#include <isa-l/crc.h>

#include "bytes.h"
#include "icrc.h"
#include "packet.h"

#define IPV4_BYTES 20
#define UDP_BYTES 8
#define IPV4_MAX_BYTES 65535
#define IPV4_ID_OFFSET 4
#define IPV4_AFTER_ID (IPV4_BYTES - IPV4_ID_OFFSET - 2)

#define PROTOCOL_UDP 17u
/* Version 4, five words, TOS masked; the total length is in the lower half. */
#define IPV4_FIRST_WORD 0x45ff0000u
/* Don't Fragment, offset 0; the identification is in the upper half. */
#define IPV4_FLAGS 0x4000u
/* Masked TTL, protocol UDP, masked checksum. */
#define IPV4_THIRD_WORD (0xff00ffffu | PROTOCOL_UDP << 16)
/* Version 6, traffic class and flow label masked. */
#define IPV6_FIRST_WORD 0x6fffffffu
/* Next header UDP, masked hop limit; the payload length is in the upper half. */
#define IPV6_LENGTH_WORD (PROTOCOL_UDP << 8 | 0xffu)
#define UDP_MASKED_CHECKSUM 0xffffu
/* FECN, BECN and the reserved bits beside them, in the BTH's second word. */
#define BTH_MASKED_BITS 0xff000000u

/*
 * What a packet is put together in: ISA-L loads 16 bytes at a time, and a load that spans several
 * younger stores has to wait for all of them, so they are stored 16 bytes at a time too (9 ns
 * instead of 22 ns for an IPv4 BTH).
 */
typedef uint32_t block __attribute__((vector_size(16)));

#define BLOCK_WORDS 4
/*
 * The front of a packet, from the eight bytes 0xFF to the BTH less the word that has made the
 * register zero: four blocks with IPv6, five words less with IPv4.
 */
#define FRONT_BLOCKS 4
#define IPV4_LESS_WORDS 5

/*
 * A CRC state that is a shift register of zeros: zero bytes leave it as it is, so blocks are filled
 * up in front.  (ISA-L inverts at start and end, so that a result is also the state to go on from.)
 */
#define REGISTER_OF_ZEROS 0xffffffffu

/*
 * From here on ISA-L uses 512-bit registers, and returns with their upper parts in use.  Until
 * they are cleared every SSE instruction of this thread takes longer: the ICRC of a small packet
 * twice as long (measured).  Code compiled for AVX clears them; asking the processor at run time
 * would make this layer depend on more than its arguments.
 */
#define WIDE_REGISTERS_FROM 256

/*
 * A call costs 13 ns and a block 2.6 ns, so what follows the BTH is copied behind it and takes part
 * in the same call: as long as ISA-L does not load 64 bytes at a time, which would span our stores.
 */
#define MOST_BLOCKS (WIDE_REGISTERS_FROM / sizeof(block) - 1)
#define MOST_WHOLE_BLOCKS (MOST_BLOCKS - FRONT_BLOCKS - 1)

static inline void clear_wide_registers(void)
{
#if defined(__x86_64__) && defined(__AVX__)
	__builtin_ia32_vzeroupper();
#endif
}

/* Four bytes in the order in which they stand. */
static inline uint32_t word(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* The BTH and all in front of it; with IPv4 the first words stay as they are, zero. */
static inline __attribute__((always_inline)) void
make_front(uint32_t *front, const struct wire_path *path, bool ipv6, uint16_t ip_id,
	   uint32_t udp_payload_length, const uint8_t *bth)
{
	uint32_t length = udp_payload_length + UDP_BYTES;
	const uint8_t *src = path->src, *dst = path->dst;

	if (ipv6) {
		front[0] = ~0u;
		front[1] = htobe32(IPV6_FIRST_WORD);
		front[2] = htobe32(length << 16 | IPV6_LENGTH_WORD);
		for (unsigned int i = 0; i < 4; i++) {
			front[3 + i] = word(src + 4 * i);
			front[7 + i] = word(dst + 4 * i);
		}
	} else {
		front[5] = ~0u;
		front[6] = htobe32(IPV4_FIRST_WORD | ((length + IPV4_BYTES) & 0xffff));
		front[7] = htobe32((uint32_t)ip_id << 16 | IPV4_FLAGS);
		front[8] = htobe32(IPV4_THIRD_WORD);
		/* An IPv4 address is the last word of its GID. */
		front[9] = word(src + 12);
		front[10] = word(dst + 12);
	}
	front[11] = htobe32((uint32_t)path->src_port << 16 | WIRE_UDP_PORT);
	front[12] = htobe32(length << 16 | UDP_MASKED_CHECKSUM);
	front[13] = word(bth);
	front[14] = word(bth + 4) | htobe32(BTH_MASKED_BITS);
	front[15] = word(bth + 8);
}

/*
 * What the front and so many words of rest as do not fill a block (extra) make, at the end of as
 * many blocks as are needed; the first that is needed is returned.  Inline, because only with
 * constant numbers of words is every word where it belongs without having been stored before.
 */
static inline __attribute__((always_inline)) block *
begin_blocks(block *blocks, const struct wire_path *path, bool ipv6, uint16_t ip_id,
	     uint32_t udp_payload_length, const uint8_t *header, unsigned int extra)
{
	const unsigned int empty =
		(BLOCK_WORDS - extra + (ipv6 ? 0 : IPV4_LESS_WORDS)) / BLOCK_WORDS;
	const uint8_t *rest = header + WIRE_BTH_BYTES;
	/* A block of zeros, the front, and the words of rest. */
	uint32_t words[BLOCK_WORDS * (FRONT_BLOCKS + 2)] = { 0 };

	make_front(words + BLOCK_WORDS, path, ipv6, ip_id, udp_payload_length, header);
	for (unsigned int i = 0; i < extra; i++)
		words[BLOCK_WORDS * (FRONT_BLOCKS + 1) + i] = word(rest + 4 * i);
#define BLOCK(i)                                                                                \
	(block)                                                                                 \
	{                                                                                       \
		words[4 * (i) + extra], words[4 * (i) + extra + 1], words[4 * (i) + extra + 2], \
			words[4 * (i) + extra + 3]                                              \
	}
	if (empty == 0)
		blocks[0] = BLOCK(0);
	if (empty <= 1)
		blocks[1] = BLOCK(1);
	blocks[2] = BLOCK(2);
	blocks[3] = BLOCK(3);
	blocks[4] = BLOCK(4);
#undef BLOCK
	return blocks + empty;
}

/* What does not go with the front in one call. */
static __attribute__((noinline)) uint32_t begin_in_two(const struct wire_path *path, uint16_t ip_id,
						       uint32_t udp_payload_length,
						       const uint8_t *header, size_t header_length)
{
	uint32_t state = wire_icrc_begin(path, ip_id, udp_payload_length, header, WIRE_BTH_BYTES);

	return wire_icrc_continue(state, header + WIRE_BTH_BYTES, header_length - WIRE_BTH_BYTES);
}

/*
 * rule S14.  The register starts as all ones, and four of the eight bytes 0xFF in front make it all
 * zeros: so it starts there and covers only the other four.
 */
uint32_t wire_icrc_begin(const struct wire_path *path, uint16_t ip_id, uint32_t udp_payload_length,
			 const uint8_t *header, size_t header_length)
{
	const uint8_t *rest = header + WIRE_BTH_BYTES, *rest_end = header + header_length;
	size_t rest_length = header_length - WIRE_BTH_BYTES;
	block blocks[MOST_BLOCKS], *first, *end = blocks + FRONT_BLOCKS + 1;

	assert(header_length >= WIRE_BTH_BYTES);
	if (rest_length % 4 != 0 || rest_length / sizeof(block) > MOST_WHOLE_BLOCKS)
		return begin_in_two(path, ip_id, udp_payload_length, header, header_length);
#define BEGIN(ipv6, extra) \
	begin_blocks(blocks, path, ipv6, ip_id, udp_payload_length, header, extra)
	switch (rest_length / 4 % BLOCK_WORDS) {
	case 0:
		first = path->ipv6 ? BEGIN(true, 0) : BEGIN(false, 0);
		break;
	case 1:
		first = path->ipv6 ? BEGIN(true, 1) : BEGIN(false, 1);
		break;
	case 2:
		first = path->ipv6 ? BEGIN(true, 2) : BEGIN(false, 2);
		break;
	default:
		first = path->ipv6 ? BEGIN(true, 3) : BEGIN(false, 3);
		break;
	}
#undef BEGIN
	for (rest += rest_length % sizeof(block); rest != rest_end; rest += sizeof(block)) {
		block copy;

		memcpy(&copy, rest, sizeof(copy));
		*end++ = copy;
	}
	return crc32_gzip_refl(REGISTER_OF_ZEROS, (const uint8_t *)first,
			       (uint64_t)((const uint8_t *)end - (const uint8_t *)first));
}

uint32_t wire_icrc_continue(uint32_t state, const uint8_t *bytes, size_t length)
{
	state = crc32_gzip_refl(state, bytes, length);
	if (length >= WIDE_REGISTERS_FROM)
		clear_wide_registers();
	return state;
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

/* Take back n zero bytes: state * x^-8n mod P, n below 2^16. */
static uint32_t unshift(uint32_t state, uint32_t n)
{
	/* x^(-8 * 2^k) mod P, each the square of the one before. */
	static const uint32_t powers[16] = {
		0x6567cb95, 0xd7125358, 0x5b358fd3, 0x2e9bb40b, 0x12a59a49, 0x8df9403d,
		0x5139de12, 0xba340226, 0x29c45641, 0x12fbc105, 0xecd30c55, 0x3755ebd8,
		0x24ee460c, 0x23783fcf, 0x479933fc, 0xa39442a5,
	};
	const uint32_t *power = powers;

	for (; n; n >>= 1, power++)
		if (n & 1)
			state = multiply(state, *power);
	return state;
}

/* The ICRC differs by so much: is there an identification that makes it right? */
static __attribute__((noinline)) enum wire_icrc_verdict solve(uint32_t difference, size_t covered,
							      uint16_t *ip_id)
{
	uint32_t after_id = (uint32_t)(IPV4_AFTER_ID + UDP_BYTES + covered);

	difference = unshift(difference, after_id + 4);
	/* Bits 16..23 hold the first byte of d, 24..31 the second; the others are x^16 and up. */
	if (difference & 0xffff)
		return WIRE_ICRC_WRONG;
	*ip_id ^= (uint16_t)(difference >> 24 | (difference >> 8 & 0xff00));
	return WIRE_ICRC_SOLVED;
}

enum wire_icrc_verdict wire_icrc_check(const struct wire_path *path, uint16_t *ip_id,
				       const uint8_t *packet, size_t length)
{
	size_t covered = length - WIRE_ICRC_BYTES;
	uint32_t difference;

	if (length < WIRE_BTH_BYTES + WIRE_ICRC_BYTES ||
	    length > IPV4_MAX_BYTES - IPV4_BYTES - UDP_BYTES)
		return WIRE_ICRC_WRONG;
	difference = wire_icrc_begin(path, *ip_id, (uint32_t)length, packet, covered) ^
		     wire_get_le32(packet + covered);
	if (!difference)
		return WIRE_ICRC_RIGHT;
	return path->ipv6 ? WIRE_ICRC_WRONG : solve(difference, covered, ip_id);
}
