/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Parsing and building: literal packets, the property parse(build(p)) == p, and every length. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "wire/packet.h"

#define CNP 0x81

static uint64_t random_bits(void)
{
	return (uint64_t)random() << 42 ^ (uint64_t)random() << 21 ^ (uint64_t)random();
}

/* Fields that the opcode does not have stay zero, as after parsing into a zeroed structure. */
static struct wire_packet random_packet(uint8_t opcode)
{
	uint16_t headers = wire_op_headers(opcode);
	struct wire_packet p;

	memset(&p, 0, sizeof(p));
	p.opcode = opcode;
	p.solicited = random() & 1;
	p.migrated = random() & 1;
	p.pkey = (uint16_t)random();
	p.congestion = (uint8_t)(random() & (WIRE_FECN | WIRE_BECN));
	p.dest_qpn = random_bits() & WIRE_24BIT_MASK;
	p.ack_request = random() & 1;
	p.psn = random_bits() & WIRE_24BIT_MASK;
	if (headers & WIRE_HAS_XRCETH)
		p.xrc_srqn = random_bits() & WIRE_24BIT_MASK;
	if (headers & WIRE_HAS_DETH) {
		p.qkey = (uint32_t)random_bits();
		p.src_qpn = random_bits() & WIRE_24BIT_MASK;
	}
	if (headers & (WIRE_HAS_RETH | WIRE_HAS_ATOMICETH)) {
		p.va = random_bits();
		p.rkey = (uint32_t)random_bits();
	}
	if (headers & WIRE_HAS_RETH)
		p.dma_length = (uint32_t)random_bits();
	if (headers & WIRE_HAS_ATOMICETH) {
		p.swap_add = random_bits();
		p.compare = random_bits();
	}
	if (headers & WIRE_HAS_AETH) {
		p.syndrome = (uint8_t)random_bits();
		p.msn = random_bits() & WIRE_24BIT_MASK;
	}
	if (headers & WIRE_HAS_ATOMICACKETH)
		p.original = random_bits();
	if (headers & WIRE_HAS_IMMDT)
		p.immediate = (uint32_t)random_bits();
	if (headers & WIRE_HAS_IETH)
		p.invalidate_rkey = (uint32_t)random_bits();
	if (headers & WIRE_HAS_FETH)
		p.flush = (uint32_t)random_bits();
	if (headers & WIRE_HAS_PAYLOAD)
		p.payload_length = (uint32_t)random() % (WIRE_MAX_MTU + 1);
	p.pad_count = -p.payload_length & 3;
	return p;
}

/* rule S1 test, rule S15 test: parsing returns the packet that was built, for every opcode. */
static void test_parse_undoes_build(void **state)
{
	uint8_t bytes[WIRE_MAX_PACKET_BYTES];
	unsigned int opcode, length;
	int i;

	(void)state;
	for (opcode = 0; opcode < 256; opcode++) {
		for (i = 0; i < 200 && wire_op_header_length((uint8_t)opcode); i++) {
			struct wire_packet p = random_packet((uint8_t)opcode), q;

			memset(bytes, 0xa5, sizeof(bytes));
			memset(&q, 0, sizeof(q));
			length = wire_build_headers(&p, bytes);
			assert_int_equal(length, wire_op_header_length((uint8_t)opcode));
			assert_int_equal(bytes[length], 0xa5);
			p.payload = bytes + length;
			length += p.payload_length + p.pad_count + WIRE_ICRC_BYTES;
			assert_int_equal(wire_parse(bytes, length, &q), WIRE_OK);
			assert_memory_equal(&p, &q, sizeof(p));
		}
	}
}

/* Numbers that are wider than their fields do not change the adjacent bits. */
static void test_build_masks_wide_numbers(void **state)
{
	struct wire_packet p = { .opcode = WIRE_XRC | WIRE_SEND_ONLY,
				 .dest_qpn = 0xff000001,
				 .psn = 0xff000002,
				 .xrc_srqn = 0xff000003,
				 .pad_count = 0xfc,
				 .version = 0xf0 };
	static const uint8_t expected[16] = { 0xa4, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3 };
	uint8_t bytes[WIRE_MAX_HEADER_BYTES];

	(void)state;
	assert_int_equal(wire_build_headers(&p, bytes), 16);
	assert_memory_equal(bytes, expected, 16);
	p = (struct wire_packet){ .opcode = WIRE_UD | WIRE_SEND_ONLY, .src_qpn = 0xff000004 };
	assert_int_equal(wire_build_headers(&p, bytes), 20);
	assert_int_equal(bytes[16], 0);
	p = (struct wire_packet){ .opcode = WIRE_ACKNOWLEDGE, .syndrome = 0x1f, .msn = 0xff000005 };
	assert_int_equal(wire_build_headers(&p, bytes), 16);
	assert_int_equal(bytes[12], 0x1f);
}

static void check_literal(const struct wire_packet *p, const uint8_t *expected, unsigned int length)
{
	uint8_t bytes[WIRE_MAX_HEADER_BYTES];

	assert_int_equal(wire_build_headers(p, bytes), length);
	assert_memory_equal(bytes, expected, length);
}

/* Packets written by hand, field by field as in the figures of the specification: connected. */
static void test_literal_headers(void **state)
{
	/* clang-format off */
	static const uint8_t write_imm[] = {
		0xab, 0xf0, 0x12, 0x34, 0xc0, 0x56, 0x78, 0x9a, 0x80, 0xbc, 0xde, 0xf0,
		0x00, 0x0a, 0x0b, 0x0c,				/* XRCETH */
		1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,	/* RETH */
		0xca, 0xfe, 0xba, 0xbe };			/* ImmDt */
	static const uint8_t compare_swap[] = {
		0x13, 0x40, 0xff, 0xff, 0, 0, 0, 2, 0x80, 0, 0, 3,
		0, 1, 2, 3, 4, 5, 6, 8, 0xaa, 0xbb, 0xcc, 0xdd,
		0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,	/* swap */
		0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28 };	/* compare */
	static const uint8_t atomic_ack[] = {
		0x12, 0x40, 0xff, 0xff, 0, 0, 0, 2, 0, 0, 0, 3,
		0x1f, 0, 1, 2, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38 };
	/* clang-format on */

	(void)state;
	check_literal(&(struct wire_packet){ .opcode = 0xab,
					     .solicited = true,
					     .migrated = true,
					     .pad_count = 3,
					     .pkey = 0x1234,
					     .congestion = WIRE_FECN | WIRE_BECN,
					     .dest_qpn = 0x56789a,
					     .ack_request = true,
					     .psn = 0xbcdef0,
					     .xrc_srqn = 0x0a0b0c,
					     .va = 0x0102030405060708,
					     .rkey = 0x090a0b0c,
					     .dma_length = 0x0d0e0f10,
					     .immediate = 0xcafebabe },
		      write_imm, sizeof(write_imm));
	check_literal(&(struct wire_packet){ .opcode = 0x13,
					     .migrated = true,
					     .pkey = 0xffff,
					     .dest_qpn = 2,
					     .ack_request = true,
					     .psn = 3,
					     .va = 0x0001020304050608,
					     .rkey = 0xaabbccdd,
					     .swap_add = 0x1112131415161718,
					     .compare = 0x2122232425262728 },
		      compare_swap, sizeof(compare_swap));
	check_literal(&(struct wire_packet){ .opcode = 0x12,
					     .migrated = true,
					     .pkey = 0xffff,
					     .dest_qpn = 2,
					     .psn = 3,
					     .syndrome = 0x1f,
					     .msn = 0x102,
					     .original = 0x3132333435363738 },
		      atomic_ack, sizeof(atomic_ack));
}

/* The same for FLUSH, whose FETH precedes the RETH, for UD and for SEND with invalidate. */
static void test_literal_headers_of_other_kinds(void **state)
{
	/* clang-format off */
	static const uint8_t flush[] = {
		0x1c, 0x40, 0xff, 0xff, 0, 0, 0, 2, 0, 0, 0, 3,
		0, 0, 0, 0x13,					/* FETH, in front of RETH */
		0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0x77, 0x88, 0, 0, 2, 0 };
	static const uint8_t ud_imm[] = {
		0x65, 0x00, 0xff, 0xff, 0, 0, 0, 1, 0, 0, 0, 9,
		0x80, 0x01, 0, 0, 0, 0, 0, 5, 0, 0, 0, 6 };
	static const uint8_t invalidate[] = {
		0x17, 0x40, 0xff, 0xff, 0, 0, 0, 2, 0, 0, 0, 3, 0xde, 0xad, 0xbe, 0xef };
	/* clang-format on */

	(void)state;
	check_literal(&(struct wire_packet){ .opcode = 0x1c,
					     .migrated = true,
					     .pkey = 0xffff,
					     .dest_qpn = 2,
					     .psn = 3,
					     .flush = 0x13,
					     .va = 0x1000,
					     .rkey = 0x7788,
					     .dma_length = 0x200 },
		      flush, sizeof(flush));
	check_literal(&(struct wire_packet){ .opcode = 0x65,
					     .pkey = 0xffff,
					     .dest_qpn = 1,
					     .psn = 9,
					     .qkey = 0x80010000,
					     .src_qpn = 5,
					     .immediate = 6 },
		      ud_imm, sizeof(ud_imm));
	check_literal(&(struct wire_packet){ .opcode = 0x17,
					     .migrated = true,
					     .pkey = 0xffff,
					     .dest_qpn = 2,
					     .psn = 3,
					     .invalidate_rkey = 0xdeadbeef },
		      invalidate, sizeof(invalidate));
}

/* A congestion notification as sent by a ConnectX-4 Lx; its reserved bytes are ignored. */
static void test_cnp(void **state)
{
	uint8_t bytes[32] = { 0x81, 0x00, 0xff, 0xff, 0x40, 0x00, 0x01, 0x18 };
	uint8_t rebuilt[WIRE_MAX_HEADER_BYTES];
	struct wire_packet p;

	(void)state;
	assert_int_equal(wire_parse(bytes, sizeof(bytes), &p), WIRE_OK);
	assert_int_equal(p.congestion, WIRE_BECN);
	assert_int_equal(p.dest_qpn, 0x118);
	assert_int_equal(p.payload_length, 0);
	memset(rebuilt, 0xee, sizeof(rebuilt));
	assert_int_equal(wire_build_headers(&p, rebuilt), 28);
	assert_memory_equal(rebuilt, bytes, 28);
	bytes[20] = 1;
	assert_int_equal(wire_parse(bytes, sizeof(bytes), &p), WIRE_OK);
	assert_int_equal(wire_parse(bytes, 28, &p), WIRE_TOO_SHORT);
}

/*
 * Returns the expected result for a packet of valid version and opcode, derived from the rules one
 * by one.
 */
static enum wire_error expected_error(uint8_t opcode, unsigned int pad, long length)
{
	long payload = length - (long)wire_op_header_length(opcode) - (long)pad - 4;

	if (length < 16 || payload < 0)
		return WIRE_TOO_SHORT;
	if (payload > 4096)
		return WIRE_TOO_LONG;
	if ((payload + pad) % 4 != 0)
		return WIRE_BAD_LENGTH;
	if (!(wire_op_headers(opcode) & WIRE_HAS_PAYLOAD) && (payload != 0 || pad != 0))
		return WIRE_BAD_LENGTH;
	return WIRE_OK;
}

/*
 * Packets of every length, opcode and pad count get the result that the rules require, without
 * reads beyond their end: the bytes lie at the end of an allocation, where a sanitizer detects such
 * reads.
 */
static void test_every_length(void **state)
{
	static const unsigned int lengths[][2] = { { 0, 130 }, { 4090, 4220 } };
	unsigned int opcode, pad, range, length;
	struct wire_packet p;

	(void)state;
	for (range = 0; range < 2; range++) {
		for (length = lengths[range][0]; length < lengths[range][1]; length++) {
			uint8_t *bytes = calloc(1, length + !length);

			assert_non_null(bytes);
			for (opcode = 0; opcode < 256; opcode++) {
				for (pad = 0; pad < 4 && wire_op_header_length((uint8_t)opcode);
				     pad++) {
					if (length > 0)
						bytes[0] = (uint8_t)opcode;
					if (length > 1)
						bytes[1] = (uint8_t)(pad << 4);
					assert_int_equal(
						wire_parse(bytes, length, &p),
						expected_error((uint8_t)opcode, pad, length));
				}
			}
			free(bytes);
		}
	}
}

/* rule S15 test: TVer other than 0 is refused, whatever the other fields. */
static void test_version(void **state)
{
	uint8_t bytes[64] = { WIRE_SEND_ONLY };
	struct wire_packet p;
	uint8_t version;

	(void)state;
	assert_int_equal(wire_parse(bytes, sizeof(bytes), &p), WIRE_OK);
	for (version = 1; version < 16; version++) {
		bytes[1] = version;
		assert_int_equal(wire_parse(bytes, sizeof(bytes), &p), WIRE_BAD_VERSION);
	}
}

/*
 * Opcodes without a row are refused: RD, RESYNC, FLUSH on XRC, READ on UC, manufacturer-specific.
 */
static void test_undefined_opcodes(void **state)
{
	static const uint8_t undefined[] = { 0x15, 0x18, 0x1b, 0x1e, 0x2c, 0x31, 0x36, 0x44,
					     0x60, 0x66, 0x80, 0x82, 0xb5, 0xbc, 0xc0, 0xff };
	uint8_t bytes[64] = { 0 };
	struct wire_packet p;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(undefined); i++) {
		bytes[0] = undefined[i];
		assert_int_equal(wire_parse(bytes, sizeof(bytes), &p), WIRE_BAD_OPCODE);
	}
}

/* rule S15 test: either value of MigReq is accepted; reserved bits and pad bytes are ignored. */
static void test_ignored_on_receipt(void **state)
{
	uint8_t bytes[20] = { WIRE_SEND_ONLY, 3 << 4, 0xff, 0xff, 0x3f, 0, 0, 7, 0x7f, 0, 0, 9,
			      0x55,	      0xaa,   0xbb, 0xcc, 0,	0, 0, 0 };
	struct wire_packet p;

	(void)state;
	assert_int_equal(wire_parse(bytes, sizeof(bytes), &p), WIRE_OK);
	assert_false(p.migrated);
	assert_int_equal(p.congestion, 0);
	assert_false(p.ack_request);
	assert_int_equal(p.dest_qpn, 7);
	assert_int_equal(p.psn, 9);
	assert_int_equal(p.payload_length, 1);
	assert_ptr_equal(p.payload, bytes + 12);
	bytes[1] |= 0x40;
	assert_int_equal(wire_parse(bytes, sizeof(bytes), &p), WIRE_OK);
	assert_true(p.migrated);
}

static void test_error_names(void **state)
{
	int error, other;

	(void)state;
	for (error = WIRE_OK; error <= WIRE_BAD_LENGTH; error++) {
		assert_string_not_equal(wire_error_name((enum wire_error)error), "unknown");
		for (other = WIRE_OK; other < error; other++)
			assert_string_not_equal(wire_error_name((enum wire_error)error),
						wire_error_name((enum wire_error)other));
	}
	assert_string_equal(wire_error_name((enum wire_error)99), "unknown");
}

/*
 * The previous contents of the structure do not matter: fields that the opcode does not have are 0.
 */
static void test_every_field_is_set(void **state)
{
	struct wire_packet expected, parsed[2];
	uint8_t bytes[WIRE_MAX_PACKET_BYTES];
	unsigned int opcode, length;

	(void)state;
	for (opcode = 0; opcode < 256; opcode++) {
		if (!wire_op_header_length((uint8_t)opcode))
			continue;
		expected = random_packet((uint8_t)opcode);
		memset(bytes, 0xee, sizeof(bytes));
		length = wire_build_headers(&expected, bytes);
		expected.payload = bytes + length;
		length += expected.payload_length + expected.pad_count + WIRE_ICRC_BYTES;
		memset(&parsed[0], 0xa5, sizeof(parsed[0]));
		memset(&parsed[1], 0x5a, sizeof(parsed[1]));
		assert_int_equal(wire_parse(bytes, length, &parsed[0]), WIRE_OK);
		assert_int_equal(wire_parse(bytes, length, &parsed[1]), WIRE_OK);
		assert_memory_equal(&parsed[0], &expected, sizeof(expected));
		assert_memory_equal(&parsed[1], &expected, sizeof(expected));
	}
}

/* ---- a peer that writes to its packet while it is parsed, as it can in shared memory ---- */

#define MOVING_BYTES 64
#define MOVING_NS 200000000u
#define MOVING_MAX_NS 10000000000u

struct moving {
	_Alignas(8) uint8_t bytes[MOVING_BYTES];
	atomic_bool stop;
};

static void *keep_changing(void *arg)
{
	/* Both are valid packets of this length; their headers and pads differ. */
	static const uint8_t faces[2][2] = { { 0x04, 0x00 }, { 0x0a, 0x30 } };
	struct moving *moving = arg;
	unsigned int turn = 0;

	while (!atomic_load_explicit(&moving->stop, memory_order_relaxed)) {
		volatile uint8_t *first = moving->bytes;

		turn++;
		first[0] = faces[turn % 2][0];
		first[1] = faces[turn / 2 % 2][1];
	}
	return NULL;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * Whichever version of the packet is parsed, the parts are those of one packet and lie inside it.
 */
static void test_packet_that_changes(void **state)
{
	static struct moving moving;
	uint64_t begin = now_ns();
	struct wire_packet packet;
	unsigned int i, seen[256] = { 0 };
	pthread_t writer;

	(void)state;
#ifdef __SANITIZE_THREAD__
	/* The data race is intended. */
	skip();
#endif
	assert_int_equal(pthread_create(&writer, NULL, keep_changing, &moving), 0);
	/* On a busy host the writer may not run for a while. */
	while (now_ns() < begin + MOVING_NS ||
	       (!(seen[0x04] && seen[0x0a]) && now_ns() < begin + MOVING_MAX_NS)) {
		for (i = 0; i < 1000; i++) {
			unsigned int header, whole;

			/* The compiler must not assume anything about the bytes from here on. */
			atomic_thread_fence(memory_order_seq_cst);
			if (wire_parse(moving.bytes, sizeof(moving.bytes), &packet) != WIRE_OK)
				continue;
			header = wire_op_header_length(packet.opcode);
			whole = header + packet.payload_length + packet.pad_count;
			seen[packet.opcode]++;
			assert_int_equal(packet.payload - moving.bytes, header);
			assert_int_equal(whole + WIRE_ICRC_BYTES, sizeof(moving.bytes));
			assert_int_equal(packet.version, 0);
		}
	}
	atomic_store(&moving.stop, true);
	pthread_join(writer, NULL);
	assert_true(seen[0x04] && seen[0x0a]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse_undoes_build),
		cmocka_unit_test(test_build_masks_wide_numbers),
		cmocka_unit_test(test_literal_headers),
		cmocka_unit_test(test_literal_headers_of_other_kinds),
		cmocka_unit_test(test_cnp),
		cmocka_unit_test(test_every_length),
		cmocka_unit_test(test_version),
		cmocka_unit_test(test_undefined_opcodes),
		cmocka_unit_test(test_ignored_on_receipt),
		cmocka_unit_test(test_error_names),
		cmocka_unit_test(test_every_field_is_set),
		cmocka_unit_test(test_packet_that_changes),
	};

	srandom(21);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
