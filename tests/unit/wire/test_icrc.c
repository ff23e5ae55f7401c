/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Compares the ICRC with packets of other implementations and with an independent computation: the
 * packet with its IP and UDP headers byte by byte, masked, and a CRC bit by bit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "wire/icrc.h"
#include "wire/packet.h"

static uint32_t crc_bit_by_bit(const uint8_t *bytes, size_t length)
{
	uint32_t crc = 0xffffffff;
	int bit;

	while (length--) {
		crc ^= *bytes++;
		for (bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
	}
	return ~crc;
}

/* Computes the four ICRC bytes as the annex describes. */
static void slow_icrc(const struct wire_path *path, uint16_t ip_id, const uint8_t *packet,
		      size_t length, uint8_t *out)
{
	static uint8_t frame[8 + 40 + 8 + 65536];
	uint8_t *at = frame;
	size_t udp_length = 8 + length, total = 20 + udp_length;
	uint32_t crc;
	int i;

	for (i = 0; i < 8; i++)
		*at++ = 0xff;
	if (path->ipv6) {
		const uint8_t ip[8] = {
			0x6f, 0xff, 0xff, 0xff, (uint8_t)(udp_length >> 8), (uint8_t)udp_length,
			17,   0xff
		};

		memcpy(at, ip, 8);
		memcpy(at + 8, path->src, 16);
		memcpy(at + 24, path->dst, 16);
		at += 40;
	} else {
		const uint8_t ip[12] = { 0x45,
					 0xff,
					 (uint8_t)(total >> 8),
					 (uint8_t)total,
					 (uint8_t)(ip_id >> 8),
					 (uint8_t)ip_id,
					 0x40,
					 0,
					 0xff,
					 17,
					 0xff,
					 0xff };

		memcpy(at, ip, 12);
		memcpy(at + 12, path->src + 12, 4);
		memcpy(at + 16, path->dst + 12, 4);
		at += 20;
	}
	*at++ = (uint8_t)(path->src_port >> 8);
	*at++ = (uint8_t)path->src_port;
	*at++ = 4791 >> 8;
	*at++ = 4791 & 0xff;
	*at++ = (uint8_t)(udp_length >> 8);
	*at++ = (uint8_t)udp_length;
	*at++ = 0xff;
	*at++ = 0xff;
	memcpy(at, packet, length - 4);
	at[4] = 0xff;
	crc = crc_bit_by_bit(frame, (size_t)(at - frame) + length - 4);
	for (i = 0; i < 4; i++)
		out[i] = (uint8_t)(crc >> 8 * i);
}

static struct wire_path random_path_of(bool ipv6)
{
	struct wire_path path = { .src_port = (uint16_t)random(), .ipv6 = ipv6 };
	int i;

	if (path.ipv6) {
		for (i = 0; i < 16; i++) {
			path.src[i] = (uint8_t)random();
			path.dst[i] = (uint8_t)random();
		}
		return path;
	}
	path.src[10] = path.src[11] = path.dst[10] = path.dst[11] = 0xff;
	for (i = 12; i < 16; i++) {
		path.src[i] = (uint8_t)random();
		path.dst[i] = (uint8_t)random();
	}
	return path;
}

static struct wire_path random_path(void)
{
	return random_path_of(random() & 1);
}

static struct wire_path ipv4_path(uint32_t src, uint32_t dst, uint16_t src_port)
{
	struct wire_path path = { .src_port = src_port };
	int i;

	path.src[10] = path.src[11] = path.dst[10] = path.dst[11] = 0xff;
	for (i = 0; i < 4; i++) {
		path.src[12 + i] = (uint8_t)(src >> (24 - 8 * i));
		path.dst[12 + i] = (uint8_t)(dst >> (24 - 8 * i));
	}
	return path;
}

static void fill_randomly(uint8_t *bytes, size_t length)
{
	while (length--)
		*bytes++ = (uint8_t)(random() >> 7);
}

/*
 * rule S14 test: a congestion notification of a ConnectX-4 Lx, captured with identification 0x718c.
 */
static void test_packet_of_an_adapter(void **state)
{
	static const uint8_t packet[32] = { 0x81, 0x00, 0xff,	     0xff, 0x40, 0x00,
					    0x01, 0x18, [28] = 0x82, 0xfd, 0x00, 0x2a };
	struct wire_path path = ipv4_path(0x0a001101, 0x0a001201, 0);
	uint8_t ours[32];
	uint16_t ip_id = 0x718c;

	(void)state;
	assert_int_equal(wire_icrc_check(&path, &ip_id, packet, 32), WIRE_ICRC_OK);
	ip_id = 0;
	assert_int_equal(wire_icrc_check(&path, &ip_id, packet, 32), WIRE_ICRC_SOLVED);
	assert_int_equal(ip_id, 0x718c);
	memcpy(ours, packet, 28);
	wire_icrc_put(&path, 0x718c, ours, 32);
	assert_memory_equal(ours, packet, 32);
}

/* rule S14 test: a UC SEND and its ICRC as published by another implementation. */
static void test_published_packet(void **state)
{
	static const uint8_t packet[36] = {
		0x24, 0x60, 0xff, 0xff, 0x00, 0x00, 0x00, 0xd3, 0x00, 0xcf, 0x17, 0x10,
		0x46, 0x30, 0x81, 0x8b, 0xe2, 0x89, 0x35, 0xd9, 0x0e, 0x9a, 0x95, 0x50,
		0x54, 0x01, 0xbe, 0x88, 0x5e, 0x50, 0x00, 0x00, 0x78, 0xf3, 0x53, 0xf3,
	};
	struct wire_path path = ipv4_path(0xc0a80007, 0xc0a80007, 49152);
	uint16_t ip_id = 1144;

	(void)state;
	assert_int_equal(wire_icrc_check(&path, &ip_id, packet, 36), WIRE_ICRC_OK);
}

/* rule S14 test: every length of a packet, odd ones too, on random paths of both IP versions. */
static void test_every_length_the_slow_way(void **state)
{
	static uint8_t packet[WIRE_MAX_PACKET_BYTES + 100];
	uint8_t expected[4];
	size_t length;

	(void)state;
	for (length = 16; length < sizeof(packet); length += length < 600 ? 1 : 13) {
		struct wire_path path = random_path();
		uint16_t ip_id = (uint16_t)random();

		fill_randomly(packet, length);
		slow_icrc(&path, ip_id, packet, length, expected);
		wire_icrc_put(&path, ip_id, packet, length);
		assert_memory_equal(packet + length - 4, expected, 4);
		assert_int_equal(wire_icrc_check(&path, &ip_id, packet, length), WIRE_ICRC_OK);
	}
}

/*
 * rule S14 test: small packets at every alignment, in one call, on both IP versions.  Each one lies
 * at the end of an allocation, so that a sanitizer detects reads beyond it, however full its last
 * block is.
 */
static void test_small_packets_the_slow_way(void **state)
{
	enum { MOST_BEHIND_BTH = 300, ALIGNMENTS = 16 };
	uint8_t packet[12 + MOST_BEHIND_BTH + 4], expected[4], icrc[4];
	size_t length, at;
	int round;

	(void)state;
	for (length = 16; length <= sizeof(packet); length++) {
		for (round = 0; round < 2 * ALIGNMENTS; round++) {
			struct wire_path path = random_path_of(round < ALIGNMENTS);
			uint16_t ip_id = (uint16_t)random();
			uint8_t *bytes;

			at = (size_t)round % ALIGNMENTS;
			bytes = malloc(at + length - 4);
			assert_non_null(bytes);
			fill_randomly(packet, length);
			memcpy(bytes + at, packet, length - 4);
			slow_icrc(&path, ip_id, packet, length, expected);
			wire_icrc_finish(wire_icrc_begin(&path, ip_id, (uint32_t)length, bytes + at,
							 length - 4),
					 icrc);
			assert_memory_equal(icrc, expected, 4);
			assert_memory_equal(bytes + at, packet, length - 4);
			free(bytes);
		}
	}
}

/*
 * rule S14 test: values precomputed for a path do not change the ICRC, for any length, alignment
 * and identification, and no byte after the packet is read.
 */
static void test_known_paths_the_slow_way(void **state)
{
	enum { MOST_BEHIND_BTH = 120, ALIGNMENTS = 16 };
	uint8_t packet[12 + MOST_BEHIND_BTH + 4], expected[4];
	size_t length;
	int round;

	(void)state;
	for (length = 16; length <= sizeof(packet); length++) {
		for (round = 0; round < 4 * ALIGNMENTS; round++) {
			size_t at = (size_t)round % ALIGNMENTS;
			uint8_t *bytes = malloc(at + length);
			struct wire_path path = random_path();
			uint16_t ip_id = (uint16_t)random(), found = ip_id;

			assert_non_null(bytes);
			fill_randomly(packet, length);
			memcpy(bytes + at, packet, length);
			slow_icrc(&path, ip_id, packet, length, expected);
			wire_icrc_precompute(&path);
			wire_icrc_put(&path, ip_id, bytes + at, length);
			assert_memory_equal(bytes + at, packet, length - 4);
			assert_memory_equal(bytes + at + length - 4, expected, 4);
			assert_int_equal(wire_icrc_check(&path, &found, bytes + at, length),
					 WIRE_ICRC_OK);
			assert_int_equal(found, ip_id);
			free(bytes);
		}
	}
}

/* The ICRC of a packet in pieces of any size, including empty ones, is that of the whole packet. */
static void test_pieces(void **state)
{
	uint8_t packet[700], icrc[4];
	int i;

	(void)state;
	for (i = 0; i < 20000; i++) {
		struct wire_path path = random_path();
		uint16_t ip_id = (uint16_t)random();
		size_t length = 16 + (size_t)random() % (sizeof(packet) - 16);
		size_t at = 12 + (size_t)random() % (length - 16 + 1), step;
		uint32_t crc;

		fill_randomly(packet, length);
		wire_icrc_put(&path, ip_id, packet, length);
		crc = wire_icrc_begin(&path, ip_id, (uint32_t)length, packet, at);
		for (; at < length - 4; at += step) {
			step = (size_t)random() % (i % 2 ? 20 : 300);
			if (step > length - 4 - at)
				step = length - 4 - at;
			crc = wire_icrc_continue(crc, packet + at, step);
		}
		wire_icrc_finish(crc, icrc);
		assert_memory_equal(icrc, packet + length - 4, 4);
	}
}

/*
 * FECN, BECN and the other six bits of their byte may change on the path; no other bit of the BTH
 * may.
 */
static void test_masked_byte(void **state)
{
	struct wire_path path = random_path();
	uint8_t packet[16] = { 0 };
	uint16_t ip_id = 0;
	int bit;

	(void)state;
	path.ipv6 = true;
	wire_icrc_put(&path, 0, packet, sizeof(packet));
	for (bit = 0; bit < 128; bit++) {
		packet[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(wire_icrc_check(&path, &ip_id, packet, sizeof(packet)),
				 bit / 8 == 4 ? WIRE_ICRC_OK : WIRE_ICRC_BAD);
		packet[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

/* Each of the 65536 identifications is found, whichever was expected. */
static void test_solves_every_identification(void **state)
{
	struct wire_path path = random_path(), known;
	uint8_t packet[40];
	uint32_t id;

	(void)state;
	path.ipv6 = false;
	known = path;
	wire_icrc_precompute(&known);
	fill_randomly(packet, sizeof(packet));
	for (id = 0; id < 65536; id++) {
		uint16_t expected = (uint16_t)random(), found = expected;

		wire_icrc_put(&path, (uint16_t)id, packet, sizeof(packet));
		if (wire_icrc_check(id % 2 ? &known : &path, &found, packet, sizeof(packet)) !=
			    (expected == id ? WIRE_ICRC_OK : WIRE_ICRC_SOLVED) ||
		    found != id)
			fail_msg("identification %#x, expected %#x, found %#x", id, expected,
				 found);
	}
}

/* The identification is found for packets of every length that IPv4 can carry, and not beyond. */
static void test_solves_at_every_length(void **state)
{
	static uint8_t packet[65535];
	struct wire_path path = random_path();
	uint16_t found = 0;
	size_t length;

	(void)state;
	path.ipv6 = false;
	fill_randomly(packet, sizeof(packet));
	for (length = 16; length <= 65507; length += length < 5000 ? 1 : 997) {
		uint16_t id = (uint16_t)(1 + random() % 65535);

		found = 0;
		wire_icrc_put(&path, id, packet, length);
		assert_int_equal(wire_icrc_check(&path, &found, packet, length), WIRE_ICRC_SOLVED);
		assert_int_equal(found, id);
	}
	found = 0;
	wire_icrc_put(&path, 0x1234, packet, 65507);
	assert_int_equal(wire_icrc_check(&path, &found, packet, 65507), WIRE_ICRC_SOLVED);
	assert_int_equal(found, 0x1234);
	wire_icrc_put(&path, 0, packet, 65508);
	found = 0;
	assert_int_equal(wire_icrc_check(&path, &found, packet, 65508), WIRE_ICRC_BAD);
}

/*
 * A damaged packet passes the IPv4 check with a probability of 1 in 65536, because the
 * identification is unknown; the expected identification changes if and only if it passes.
 */
static void test_damage_is_seen(void **state)
{
	enum { TRIES = 1000000, MOST_ACCEPTED = 45 }; /* 15 on average */
	struct wire_path path = random_path();
	uint8_t packet[64];
	int i, accepted = 0;

	(void)state;
	path.ipv6 = false;
	fill_randomly(packet, sizeof(packet));
	wire_icrc_put(&path, 0, packet, sizeof(packet));
	for (i = 0; i < TRIES; i++) {
		uint32_t damage = (uint32_t)random() << 1 | 1;
		uint16_t ip_id = 0;
		enum wire_icrc_verdict verdict;

		packet[60] = (uint8_t)damage;
		packet[61] = (uint8_t)(damage >> 8);
		packet[62] = (uint8_t)(damage >> 16);
		packet[63] = (uint8_t)(damage >> 24);
		verdict = wire_icrc_check(&path, &ip_id, packet, sizeof(packet));
		accepted += verdict != WIRE_ICRC_BAD;
		if ((verdict == WIRE_ICRC_SOLVED) != (ip_id != 0))
			fail_msg("verdict %d leaves identification %#x", verdict, ip_id);
	}
	assert_uint_in_range(accepted, 1, MOST_ACCEPTED);
}

/* A packet that is too short for BTH and ICRC is bad, and no byte beyond its end is read. */
static void test_too_short(void **state)
{
	struct wire_path path = random_path();
	uint16_t ip_id = 7;
	size_t length;

	(void)state;
	for (length = 0; length < 16; length++) {
		uint8_t *packet = calloc(1, length + !length);

		assert_non_null(packet);
		assert_int_equal(wire_icrc_check(&path, &ip_id, packet, length), WIRE_ICRC_BAD);
		free(packet);
	}
	assert_int_equal(ip_id, 7);
}

/* IPv6 has no identification to determine: any other ICRC is bad, and ip_id does not change. */
static void test_ipv6_is_exact(void **state)
{
	struct wire_path path = random_path();
	uint16_t ip_id = 0x5555;
	uint8_t packet[44], expected[4];
	int i;

	(void)state;
	path.ipv6 = true;
	fill_randomly(packet, sizeof(packet));
	wire_icrc_put(&path, 0, packet, sizeof(packet));
	slow_icrc(&path, 99, packet, sizeof(packet), expected);
	assert_memory_equal(packet + 40, expected, 4);
	for (i = 0; i < 32; i++) {
		packet[40 + i / 8] ^= (uint8_t)(1 << i % 8);
		assert_int_equal(wire_icrc_check(&path, &ip_id, packet, sizeof(packet)),
				 WIRE_ICRC_BAD);
		packet[40 + i / 8] ^= (uint8_t)(1 << i % 8);
	}
	assert_int_equal(wire_icrc_check(&path, &ip_id, packet, sizeof(packet)), WIRE_ICRC_OK);
	assert_int_equal(ip_id, 0x5555);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_packet_of_an_adapter),
		cmocka_unit_test(test_published_packet),
		cmocka_unit_test(test_every_length_the_slow_way),
		cmocka_unit_test(test_small_packets_the_slow_way),
		cmocka_unit_test(test_known_paths_the_slow_way),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_masked_byte),
		cmocka_unit_test(test_solves_every_identification),
		cmocka_unit_test(test_solves_at_every_length),
		cmocka_unit_test(test_damage_is_seen),
		cmocka_unit_test(test_too_short),
		cmocka_unit_test(test_ipv6_is_exact),
	};

	srandom(22);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
