/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * ICRC of a packet whose IP and UDP headers are created by the kernel: they are reconstructed from
 * the path, with the masked fields all ones.
 *
 * How wire_icrc_check() solves for the IPv4 ID: read bits as polynomials over GF(2), and let P be
 * the polynomial of the CRC.  If two messages of the same length differ by the polynomial d (degree
 * below 16) in the two bytes of the IPv4 ID and nowhere else, their CRCs differ by d * x^(8n + 32)
 * mod P, where n is the number of bytes after the IPv4 ID.  x has an inverse modulo P, so the CRC
 * difference times x^-(8n + 32) is d.  If that has a degree of 16 or more, no IPv4 ID makes the CRC
 * right.
 */
#include <assert.h>
#include <isa-l/crc.h>

#include "bytes.h"
#include "icrc.h"
#include "packet.h"

#define IPV4_MAX_BYTES 65535
#define IPV4_ID_OFFSET 4
#define IPV4_AFTER_ID (WIRE_IPV4_BYTES - IPV4_ID_OFFSET - 2)

#define PROTOCOL_UDP 17u
/* Version 4, five words, TOS masked; the total length is in the lower half. */
#define IPV4_FIRST_WORD 0x45ff0000u
/* Don't Fragment, offset 0; the IPv4 ID is in the upper half. */
#define IPV4_FLAGS 0x4000u
/* Masked TTL, protocol UDP, masked checksum. */
#define IPV4_THIRD_WORD (0xff00ffffu | PROTOCOL_UDP << 16)
/* Version 6, traffic class and flow label masked. */
#define IPV6_FIRST_WORD 0x6fffffffu
/* Next header UDP, masked hop limit; the payload length is in the upper half. */
#define IPV6_LENGTH_WORD (PROTOCOL_UDP << 8 | 0xffu)
#define UDP_MASKED_CHECKSUM 0xffffu
/* FECN, BECN and the reserved bits next to them, in the second word of the BTH. */
#define BTH_MASKED_BITS 0xff000000u

/*
 * Unit in which the input of the CRC is assembled.  ISA-L loads 16 bytes at a time, and a load that
 * spans several recent stores must wait for all of them, so 16 bytes are stored at a time too.
 */
typedef uint32_t block __attribute__((vector_size(16)));

#define BLOCK_WORDS 4
/*
 * Front of a packet: the eight bytes 0xFF to the BTH, without the word that brings the CRC register
 * to zero.  Four blocks with IPv6, five words less with IPv4.
 */
#define FRONT_BLOCKS 4
#define IPV4_SKIPPED_WORDS 5
#define FRONT_WORDS 13 /* words in these blocks before the BTH */

/*
 * CRC state with a shift register of zeros.  Zero bytes do not change it, so the first block can be
 * padded with zeros at its start.  (ISA-L inverts at start and end, so a result is also the state
 * to continue with.)
 */
#define ZERO_REGISTER 0xffffffffu

/*
 * Length from which ISA-L uses 512-bit registers and returns with their upper parts in use (2.30).
 * Until those are cleared, each SSE instruction of this thread depends on the old contents of its
 * register, that is on the end of the previous checksum and hence on memory: streams of 64 KiB
 * messages are about 16 % slower without vzeroupper.
 */
#define WIDE_REGISTERS_MIN 256

/*
 * A call costs as much as five blocks, so what follows the BTH is copied behind it and included in
 * the same call; but only below the length at which ISA-L loads 64 bytes at a time, which would
 * span our stores.
 */
#define MAX_BLOCKS (WIDE_REGISTERS_MIN / sizeof(block) - 1)
#define MAX_WHOLE_BLOCKS (MAX_BLOCKS - FRONT_BLOCKS - 1)

static inline void clear_wide_registers(void)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx"))
		__asm__ volatile("vzeroupper" ::
					 : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
					   "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
					   "xmm13", "xmm14", "xmm15");
#endif
}

/* Four bytes in memory order. */
static inline uint32_t load_word(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* Writes the front and the BTH; with IPv4 the first five words are not written. */
static inline __attribute__((always_inline)) void
write_front(uint32_t *front, const struct wire_path *path, bool ipv6, uint16_t ip_id,
	    uint32_t udp_payload_length, const uint8_t *bth)
{
	uint32_t length = udp_payload_length + WIRE_UDP_BYTES;
	const uint8_t *src = path->src, *dst = path->dst;

	if (ipv6) {
		front[0] = ~0u;
		front[1] = htobe32(IPV6_FIRST_WORD);
		front[2] = htobe32(length << 16 | IPV6_LENGTH_WORD);
		for (unsigned int i = 0; i < 4; i++) {
			front[3 + i] = load_word(src + 4 * i);
			front[7 + i] = load_word(dst + 4 * i);
		}
	} else {
		front[5] = ~0u;
		front[6] = htobe32(IPV4_FIRST_WORD | ((length + WIRE_IPV4_BYTES) & 0xffff));
		front[7] = htobe32((uint32_t)ip_id << 16 | IPV4_FLAGS);
		front[8] = htobe32(IPV4_THIRD_WORD);
		/* An IPv4 address is the last word of its GID. */
		front[9] = load_word(src + 12);
		front[10] = load_word(dst + 12);
	}
	front[11] = htobe32((uint32_t)path->src_port << 16 | WIRE_UDP_PORT);
	front[12] = htobe32(length << 16 | UDP_MASKED_CHECKSUM);
	front[13] = load_word(bth);
	front[14] = load_word(bth + 4) | htobe32(BTH_MASKED_BITS);
	front[15] = load_word(bth + 8);
}

/*
 * Writes the front, and as many words after the BTH (extra) as do not fill a block, right-aligned
 * in FRONT_BLOCKS + 1 blocks.  Returns the first block used.  Inlined with constant ipv6 and extra,
 * so that the words go directly to their blocks and not through memory.
 */
static inline __attribute__((always_inline)) block *
begin_blocks(block *blocks, const struct wire_path *path, bool ipv6, uint16_t ip_id,
	     uint32_t udp_payload_length, const uint8_t *header, unsigned int extra)
{
	const unsigned int empty =
		(BLOCK_WORDS - extra + (ipv6 ? 0 : IPV4_SKIPPED_WORDS)) / BLOCK_WORDS;
	const uint8_t *rest = header + WIRE_BTH_BYTES;
	/* One block of zeros, the front, and the extra words. */
	uint32_t words[BLOCK_WORDS * (FRONT_BLOCKS + 2)] = { 0 };

	write_front(words + BLOCK_WORDS, path, ipv6, ip_id, udp_payload_length, header);
	for (unsigned int i = 0; i < extra; i++)
		words[BLOCK_WORDS * (FRONT_BLOCKS + 1) + i] = load_word(rest + 4 * i);
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

/* As wire_icrc_begin(), for headers that do not fit into one call with the front. */
static __attribute__((noinline)) uint32_t
begin_in_two_calls(const struct wire_path *path, uint16_t ip_id, uint32_t udp_payload_length,
		   const uint8_t *header, size_t header_length)
{
	uint32_t state = wire_icrc_begin(path, ip_id, udp_payload_length, header, WIRE_BTH_BYTES);

	return wire_icrc_continue(state, header + WIRE_BTH_BYTES, header_length - WIRE_BTH_BYTES);
}

/*
 * rule S14.  The CRC register starts as all ones, and four of the eight bytes 0xFF make it zero: so
 * the computation starts there and covers only the other four.
 */
uint32_t wire_icrc_begin(const struct wire_path *path, uint16_t ip_id, uint32_t udp_payload_length,
			 const uint8_t *header, size_t header_length)
{
	const uint8_t *rest = header + WIRE_BTH_BYTES, *rest_end = header + header_length;
	size_t rest_length = header_length - WIRE_BTH_BYTES;
	block blocks[MAX_BLOCKS], *first, *end = blocks + FRONT_BLOCKS + 1;

	assert(header_length >= WIRE_BTH_BYTES);
	if (rest_length % 4 != 0 || rest_length / sizeof(block) > MAX_WHOLE_BLOCKS)
		return begin_in_two_calls(path, ip_id, udp_payload_length, header, header_length);
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
	return crc32_gzip_refl(ZERO_REGISTER, (const uint8_t *)first,
			       (uint64_t)((const uint8_t *)end - (const uint8_t *)first));
}

/* ---- short packets on a path with precomputed ICRC ---- */

/*
 * CRC is linear: the register after the headers outside a packet is that of a packet of minimum
 * length with IPv4 ID 0, XOR the effect of the difference in the length fields, XOR the effect of
 * the IPv4 ID.  The first is stored in each path, the others are in tables.  Starting a CRC with
 * such a register is the same as starting with zeros and XORing it to the first four bytes.
 */
#define SHORT_MIN 16
#define SHORT_MAX 96
#define SHORT_LENGTHS ((SHORT_MAX - SHORT_MIN) / 4 + 1)

/*
 * BEFORE_N(byte): effect on the register of a byte that is followed by N bytes, as the sum over its
 * bits, lowest first.
 */
#define SUM(byte, b0, b1, b2, b3, b4, b5, b6, b7)                                                \
	(((byte)&1 ? b0 : 0) ^ ((byte)&2 ? b1 : 0) ^ ((byte)&4 ? b2 : 0) ^ ((byte)&8 ? b3 : 0) ^ \
	 ((byte)&16 ? b4 : 0) ^ ((byte)&32 ? b5 : 0) ^ ((byte)&64 ? b6 : 0) ^                    \
	 ((byte)&128 ? b7 : 0))
#define BEFORE_2(byte)                                                                          \
	SUM(byte, 0x01c26a37u, 0x0384d46eu, 0x0709a8dcu, 0x0e1351b8u, 0x1c26a370u, 0x384d46e0u, \
	    0x709a8dc0u, 0xe1351b80u)
#define BEFORE_22(byte)                                                                         \
	SUM(byte, 0x9b73ead4u, 0xed96d3e9u, 0x005ca193u, 0x00b94326u, 0x0172864cu, 0x02e50c98u, \
	    0x05ca1930u, 0x0b943260u)
#define BEFORE_23(byte)                                                                         \
	SUM(byte, 0x81256527u, 0xd93bcc0fu, 0x69069e5fu, 0xd20d3cbeu, 0x7f6b7f3du, 0xfed6fe7au, \
	    0x26dcfab5u, 0x4db9f56au)
#define BEFORE_24(byte)                                                                         \
	SUM(byte, 0xa58b900eu, 0x9066265du, 0xfbbd4afbu, 0x2c0b93b7u, 0x5817276eu, 0xb02e4edcu, \
	    0xbb2d9bf9u, 0xad2a31b3u)
#define BEFORE_42(byte)                                                                         \
	SUM(byte, 0x4713f6fbu, 0x8e27edf6u, 0xc73eddadu, 0x550cbd1bu, 0xaa197a36u, 0x8f43f22du, \
	    0xc5f6e21bu, 0x509cc277u)

/* Effect of both length fields (UDP, and IPv4 or IPv6), of which all upper bytes are 0. */
#define OF_LENGTH_4(udp) (BEFORE_2(udp) ^ BEFORE_24((udp) + WIRE_IPV4_BYTES))
#define OF_LENGTH_6(udp) (BEFORE_2(udp) ^ BEFORE_42(udp))
#define LENGTH_4(length) \
	OF_LENGTH_4((length) + WIRE_UDP_BYTES) ^ OF_LENGTH_4(SHORT_MIN + WIRE_UDP_BYTES)
#define LENGTH_6(length) \
	OF_LENGTH_6((length) + WIRE_UDP_BYTES) ^ OF_LENGTH_6(SHORT_MIN + WIRE_UDP_BYTES)
#define FOUR(LENGTH, from) LENGTH(from), LENGTH((from) + 4), LENGTH((from) + 8), LENGTH((from) + 12)
#define ALL_LENGTHS(LENGTH)                                                             \
	{                                                                               \
		FOUR(LENGTH, 16), FOUR(LENGTH, 32), FOUR(LENGTH, 48), FOUR(LENGTH, 64), \
			FOUR(LENGTH, 80), LENGTH(SHORT_MAX)                             \
	}

static const uint32_t length_effect[2][SHORT_LENGTHS] = { ALL_LENGTHS(LENGTH_4),
							  ALL_LENGTHS(LENGTH_6) };

#define FOUR_BYTES(BEFORE, byte) \
	BEFORE(byte), BEFORE((byte) + 1), BEFORE((byte) + 2), BEFORE((byte) + 3)
#define SIXTEEN_BYTES(BEFORE, byte)                                                               \
	FOUR_BYTES(BEFORE, byte), FOUR_BYTES(BEFORE, (byte) + 4), FOUR_BYTES(BEFORE, (byte) + 8), \
		FOUR_BYTES(BEFORE, (byte) + 12)
#define SIXTY_FOUR_BYTES(BEFORE, byte)                                   \
	SIXTEEN_BYTES(BEFORE, byte), SIXTEEN_BYTES(BEFORE, (byte) + 16), \
		SIXTEEN_BYTES(BEFORE, (byte) + 32), SIXTEEN_BYTES(BEFORE, (byte) + 48)
#define ALL_BYTES(BEFORE)                                                            \
	{                                                                            \
		SIXTY_FOUR_BYTES(BEFORE, 0), SIXTY_FOUR_BYTES(BEFORE, 64),           \
			SIXTY_FOUR_BYTES(BEFORE, 128), SIXTY_FOUR_BYTES(BEFORE, 192) \
	}

/* Effect of the lower and of the upper byte of the IPv4 ID. */
static const uint32_t id_effect[2][256] = { ALL_BYTES(BEFORE_22), ALL_BYTES(BEFORE_23) };

void wire_icrc_precompute(struct wire_path *path)
{
	static const uint8_t no_header[WIRE_BTH_BYTES];
	uint32_t front[BLOCK_WORDS * FRONT_BLOCKS];
	unsigned int from = path->ipv6 ? 0 : IPV4_SKIPPED_WORDS;

	write_front(front, path, path->ipv6, 0, SHORT_MIN, no_header);
	path->icrc_state = ~crc32_gzip_refl(ZERO_REGISTER, (const uint8_t *)(front + from),
					    (FRONT_WORDS - from) * sizeof(front[0]));
}

/*
 * Returns true for a short packet on a path with precomputed ICRC.  The value of one path in 2^32
 * is 0 and so not recognised, which only makes that path slower.
 */
static inline bool is_short(const struct wire_path *path, size_t length)
{
	return path->icrc_state && length % 4 == 0 && length - SHORT_MIN <= SHORT_MAX - SHORT_MIN;
}

static inline uint32_t register_after_front(const struct wire_path *path, uint16_t ip_id,
					    size_t length)
{
	uint32_t state = path->icrc_state ^ length_effect[path->ipv6][(length - SHORT_MIN) / 4];

	if (path->ipv6)
		return state;
	return state ^ id_effect[0][ip_id & 255] ^ id_effect[1][ip_id >> 8];
}

static inline block load_block(const uint8_t *from)
{
	block value;

	memcpy(&value, from, sizeof(value));
	return value;
}

/* short_icrc() for packets of one block, such as ACKs, and SENDs of at most four bytes. */
#define ONE_BLOCK_BYTES (sizeof(block) + WIRE_ICRC_BYTES)
static inline __attribute__((always_inline)) uint32_t
one_block_icrc(const struct wire_path *path, uint16_t ip_id, const uint8_t *packet)
{
	const uint32_t begin = htole32(register_after_front(path, ip_id, ONE_BLOCK_BYTES));
	const block one =
		(load_block(packet) ^ (block){ begin }) | (block){ 0, htobe32(BTH_MASKED_BITS) };

	return crc32_gzip_refl(ZERO_REGISTER, (const uint8_t *)&one, sizeof(one));
}

/* ICRC of a short packet, in blocks padded at the start as in wire_icrc_begin(). */
static __attribute__((noinline)) uint32_t short_icrc(const struct wire_path *path, uint16_t ip_id,
						     const uint8_t *packet, size_t length)
{
	const uint8_t *from, *packet_end = packet + length - WIRE_ICRC_BYTES;
	const uint32_t begin = htole32(register_after_front(path, ip_id, length));
	const uint32_t masked = htobe32(BTH_MASKED_BITS);
	block blocks[SHORT_MAX / sizeof(block) + 1], *end = blocks;

	switch ((length - WIRE_ICRC_BYTES) / 4 % BLOCK_WORDS) {
	case 0:
		*end++ = (load_block(packet) ^ (block){ begin }) | (block){ 0, masked };
		from = packet + 16;
		break;
	case 1:
		*end++ = (block){ 0, 0, 0, load_word(packet) ^ begin };
		*end++ = load_block(packet + 4) | (block){ masked };
		from = packet + 20;
		break;
	case 2:
		*end++ = (block){ 0, 0, load_word(packet) ^ begin, load_word(packet + 4) | masked };
		from = packet + 8;
		break;
	default:
		*end++ = (block){ 0, load_word(packet) ^ begin, load_word(packet + 4) | masked,
				  load_word(packet + 8) };
		from = packet + 12;
		break;
	}
	for (; from != packet_end; from += sizeof(block))
		*end++ = load_block(from);
	return crc32_gzip_refl(ZERO_REGISTER, (const uint8_t *)blocks,
			       (uint64_t)((const uint8_t *)end - (const uint8_t *)blocks));
}

/* ---- all packets ---- */

uint32_t wire_icrc_continue(uint32_t state, const uint8_t *bytes, size_t length)
{
	state = crc32_gzip_refl(state, bytes, length);
	if (length >= WIDE_REGISTERS_MIN)
		clear_wide_registers();
	return state;
}

void wire_icrc_finish(uint32_t state, uint8_t *out)
{
	wire_put_le32(out, state);
}

static inline __attribute__((always_inline)) uint32_t
icrc_of(const struct wire_path *path, uint16_t ip_id, const uint8_t *packet, size_t length)
{
	if (length == ONE_BLOCK_BYTES && path->icrc_state)
		return one_block_icrc(path, ip_id, packet);
	if (is_short(path, length))
		return short_icrc(path, ip_id, packet, length);
	return wire_icrc_begin(path, ip_id, (uint32_t)length, packet, length - WIRE_ICRC_BYTES);
}

inline void wire_icrc_put(const struct wire_path *path, uint16_t ip_id, uint8_t *packet,
			  size_t length)
{
	size_t covered = length - WIRE_ICRC_BYTES;

	wire_icrc_finish(icrc_of(path, ip_id, packet, length), packet + covered);
}

/* As in the CRC, the bits of polynomials are reflected: bit 31 is x^0. */
static inline uint32_t multiply_by_x(uint32_t a)
{
	/* All ones or all zeros, to avoid an unpredictable branch. */
	return (a >> 1) ^ (0xedb88320u & (0u - (a & 1)));
}

/* Product of two polynomials modulo P, four bits of a at a time. */
static uint32_t multiply_mod_p(uint32_t a, uint32_t b)
{
	/* Remainder of the four bits that are shifted out. */
	static const uint32_t reduced[16] = {
		0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
		0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
		0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
	};
	const uint32_t x1 = multiply_by_x(b), x2 = multiply_by_x(x1), x3 = multiply_by_x(x2);
	/* Product of b and the polynomial of each four bits, the uppermost of which is x^0. */
	const uint32_t multiples[16] = {
		0, x3,	   x2,	   x2 ^ x3,	x1,	x1 ^ x3,     x1 ^ x2,	  x1 ^ x2 ^ x3,
		b, b ^ x3, b ^ x2, b ^ x2 ^ x3, b ^ x1, b ^ x1 ^ x3, b ^ x1 ^ x2, b ^ x1 ^ x2 ^ x3,
	};
	uint32_t product = 0;

	for (unsigned int bit = 0; bit < 32; bit += 4)
		product = (product >> 4) ^ reduced[product & 15] ^ multiples[a >> bit & 15];
	return product;
}

/* Removes n zero bytes from the end: returns state * x^-8n mod P.  n < 2^16. */
static uint32_t remove_zero_bytes(uint32_t state, uint32_t n)
{
	/* x^(-8 * d * 16^k) mod P for digit d of n at place k. */
	static const uint32_t powers[4][16] = {
		{ 0x80000000, 0x6567cb95, 0xd7125358, 0x1f81b6e1, 0x5b358fd3, 0xeb21cebf,
		  0x2ff880c5, 0x97fc423c, 0x2e9bb40b, 0x2fb98a7d, 0xd6f6fa3c, 0x2059d4a0,
		  0x36511375, 0x525983aa, 0x31619cb3, 0x0f125cae },
		{ 0x80000000, 0x12a59a49, 0x8df9403d, 0x9d764201, 0x5139de12, 0x17958e0b,
		  0xdb1c4863, 0xc31ec6b9, 0xba340226, 0x6b85d37b, 0x0ba861bc, 0x39b0d61c,
		  0xfb844d1f, 0xc9771684, 0x8073ef0c, 0xc3f881be },
		{ 0x80000000, 0x29c45641, 0x12fbc105, 0x8b712bc1, 0xecd30c55, 0x930588dc,
		  0x3c4c471a, 0x25cd5760, 0x3755ebd8, 0xe264a9e0, 0xc3a68b42, 0x219c9d64,
		  0x75cc86fa, 0xebcce135, 0x84773a36, 0x4e1b970f },
		{ 0x80000000, 0x24ee460c, 0x23783fcf, 0xea8683d0, 0x479933fc, 0x1e25ac62,
		  0x6523628c, 0x3704e154, 0xa39442a5, 0x4ff1fa8c, 0xbc26806e, 0x1b2888be,
		  0x7910287d, 0xb8721901, 0x7bea74c8, 0x655ffa6b },
	};

	for (const uint32_t(*place)[16] = powers; n; n /= 16, place++)
		if (n % 16)
			state = multiply_mod_p(state, (*place)[n % 16]);
	return state;
}

/* Changes *ip_id so that the ICRC changes by difference; WIRE_ICRC_BAD if no IPv4 ID does that. */
static __attribute__((noinline)) enum wire_icrc_verdict solve_ip_id(uint32_t difference,
								    size_t covered, uint16_t *ip_id)
{
	uint32_t after_id = (uint32_t)(IPV4_AFTER_ID + WIRE_UDP_BYTES + covered);

	difference = remove_zero_bytes(difference, after_id + 4);
	/*
	 * Bits 16..23 are the first byte of d, bits 24..31 the second; the others are x^16 and
	 * above.
	 */
	if (difference & 0xffff)
		return WIRE_ICRC_BAD;
	*ip_id ^= (uint16_t)(difference >> 24 | (difference >> 8 & 0xff00));
	return WIRE_ICRC_SOLVED;
}

inline enum wire_icrc_verdict wire_icrc_check(const struct wire_path *path, uint16_t *ip_id,
					      const uint8_t *packet, size_t length)
{
	size_t covered = length - WIRE_ICRC_BYTES;
	uint32_t difference;

	if (length < WIRE_BTH_BYTES + WIRE_ICRC_BYTES ||
	    length > IPV4_MAX_BYTES - WIRE_IPV4_BYTES - WIRE_UDP_BYTES)
		return WIRE_ICRC_BAD;
	difference = icrc_of(path, *ip_id, packet, length) ^ wire_get_le32(packet + covered);
	if (!difference)
		return WIRE_ICRC_OK;
	return path->ipv6 ? WIRE_ICRC_BAD : solve_ip_id(difference, covered, ip_id);
}
