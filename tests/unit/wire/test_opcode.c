/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Compares the opcode table with independent sources: numbers with libibverbs, header lengths and
 * services with a table written by hand, succession with a nested switch.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <infiniband/opcode.h>

#include "wire/opcode.h"

enum { CNP = 0x81 };

/*
 * Written by hand from the specification's list of packets: length of the headers after the BTH on
 * RC, and the services that have the opcode.
 */
enum { ON_RC = 1, ON_UC = 2, ON_UD = 4, ON_XRC = 8, ON_RELIABLE = ON_RC | ON_XRC };
enum { ON_CONNECTED = ON_RC | ON_UC | ON_XRC };
static const struct {
	const char *name;
	unsigned int services;
	unsigned int extension_bytes;
	bool response;
	bool payload;
} by_hand[32] = {
	[0x00] = { "SEND_FIRST", ON_CONNECTED, 0, false, true },
	[0x01] = { "SEND_MIDDLE", ON_CONNECTED, 0, false, true },
	[0x02] = { "SEND_LAST", ON_CONNECTED, 0, false, true },
	[0x03] = { "SEND_LAST_IMM", ON_CONNECTED, 4, false, true },
	[0x04] = { "SEND_ONLY", ON_CONNECTED | ON_UD, 0, false, true },
	[0x05] = { "SEND_ONLY_IMM", ON_CONNECTED | ON_UD, 4, false, true },
	[0x06] = { "WRITE_FIRST", ON_CONNECTED, 16, false, true },
	[0x07] = { "WRITE_MIDDLE", ON_CONNECTED, 0, false, true },
	[0x08] = { "WRITE_LAST", ON_CONNECTED, 0, false, true },
	[0x09] = { "WRITE_LAST_IMM", ON_CONNECTED, 4, false, true },
	[0x0a] = { "WRITE_ONLY", ON_CONNECTED, 16, false, true },
	[0x0b] = { "WRITE_ONLY_IMM", ON_CONNECTED, 20, false, true },
	[0x0c] = { "READ_REQUEST", ON_RELIABLE, 16, false, false },
	[0x0d] = { "READ_RESPONSE_FIRST", ON_RELIABLE, 4, true, true },
	[0x0e] = { "READ_RESPONSE_MIDDLE", ON_RELIABLE, 0, true, true },
	[0x0f] = { "READ_RESPONSE_LAST", ON_RELIABLE, 4, true, true },
	[0x10] = { "READ_RESPONSE_ONLY", ON_RELIABLE, 4, true, true },
	[0x11] = { "ACKNOWLEDGE", ON_RELIABLE, 4, true, false },
	[0x12] = { "ATOMIC_ACKNOWLEDGE", ON_RELIABLE, 12, true, false },
	[0x13] = { "COMPARE_SWAP", ON_RELIABLE, 28, false, false },
	[0x14] = { "FETCH_ADD", ON_RELIABLE, 28, false, false },
	[0x16] = { "SEND_LAST_INVALIDATE", ON_RELIABLE, 4, false, true },
	[0x17] = { "SEND_ONLY_INVALIDATE", ON_RELIABLE, 4, false, true },
	[0x1c] = { "FLUSH", ON_RC, 20, false, false },
	[0x1d] = { "ATOMIC_WRITE", ON_RC, 16, false, true },
};

static const char *const service_names[8] = { "RC", "UC", NULL, "UD", NULL, "XRC", NULL, NULL };
static const unsigned int service_bits[8] = { ON_RC, ON_UC, 0, ON_UD, 0, ON_XRC, 0, 0 };

/*
 * Definition, name, class and header length of every opcode are those of the table written by hand;
 * 63 opcodes are defined.
 */
static void test_table_by_hand(void **state)
{
	unsigned int opcode, defined = 0;

	(void)state;
	for (opcode = 0; opcode < 256; opcode++) {
		uint8_t op = (uint8_t)opcode;
		unsigned int row = opcode & 31, service = opcode >> 5;
		unsigned int length = 12 + by_hand[row].extension_bytes;
		char name[40];

		defined += wire_op_header_length(op) != 0;
		if (opcode == CNP)
			continue;
		if (!(by_hand[row].services & service_bits[service])) {
			assert_int_equal(wire_op_headers(op), 0);
			assert_int_equal(wire_op_header_length(op), 0);
			assert_string_equal(wire_op_name(op), "unknown");
			assert_false(wire_op_is_request(op));
			assert_false(wire_op_is_response(op));
			continue;
		}
		if (service_bits[service] == ON_UD)
			length += 8;
		if (service_bits[service] == ON_XRC && !by_hand[row].response)
			length += 4;
		assert_int_equal(wire_op_header_length(op), length);
		snprintf(name, sizeof(name), "%s %s", service_names[service], by_hand[row].name);
		assert_string_equal(wire_op_name(op), name);
		assert_int_equal(wire_op_is_response(op), by_hand[row].response);
		assert_int_equal(wire_op_is_request(op), !by_hand[row].response);
		assert_int_equal(!!(wire_op_headers(op) & WIRE_HAS_PAYLOAD), by_hand[row].payload);
	}
	assert_int_equal(defined, 25 + 12 + 2 + 23 + 1);
}

/* A congestion notification is neither request nor response, and has 16 reserved bytes. */
static void test_cnp(void **state)
{
	(void)state;
	assert_string_equal(wire_op_name(CNP), "CNP");
	assert_int_equal(wire_op_header_length(CNP), 12 + 16);
	assert_int_equal(wire_op_headers(CNP), 0);
	assert_false(wire_op_is_request(CNP));
	assert_false(wire_op_is_response(CNP));
	assert_int_equal(wire_op_header_length(0x80), 0);
}

#define SAME(ours, theirs) assert_int_equal(WIRE_##ours, IBV_OPCODE_##theirs)

/* Operations and services have the numbers that libibverbs has for them. */
static void test_numbers_of_libibverbs(void **state)
{
	(void)state;
	SAME(RC, RC);
	SAME(UC, UC);
	SAME(UD, UD);
	SAME(SEND_FIRST, SEND_FIRST);
	SAME(SEND_MIDDLE, SEND_MIDDLE);
	SAME(SEND_LAST, SEND_LAST);
	SAME(SEND_LAST_IMM, SEND_LAST_WITH_IMMEDIATE);
	SAME(SEND_ONLY, SEND_ONLY);
	SAME(SEND_ONLY_IMM, SEND_ONLY_WITH_IMMEDIATE);
	SAME(WRITE_FIRST, RDMA_WRITE_FIRST);
	SAME(WRITE_MIDDLE, RDMA_WRITE_MIDDLE);
	SAME(WRITE_LAST, RDMA_WRITE_LAST);
	SAME(WRITE_LAST_IMM, RDMA_WRITE_LAST_WITH_IMMEDIATE);
	SAME(WRITE_ONLY, RDMA_WRITE_ONLY);
	SAME(WRITE_ONLY_IMM, RDMA_WRITE_ONLY_WITH_IMMEDIATE);
	SAME(READ_REQUEST, RDMA_READ_REQUEST);
	SAME(READ_RESPONSE_FIRST, RDMA_READ_RESPONSE_FIRST);
	SAME(READ_RESPONSE_MIDDLE, RDMA_READ_RESPONSE_MIDDLE);
	SAME(READ_RESPONSE_LAST, RDMA_READ_RESPONSE_LAST);
	SAME(READ_RESPONSE_ONLY, RDMA_READ_RESPONSE_ONLY);
	SAME(ACKNOWLEDGE, ACKNOWLEDGE);
	SAME(ATOMIC_ACKNOWLEDGE, ATOMIC_ACKNOWLEDGE);
	SAME(COMPARE_SWAP, COMPARE_SWAP);
	SAME(FETCH_ADD, FETCH_ADD);
	assert_int_equal(WIRE_UD | WIRE_SEND_ONLY_IMM, IBV_OPCODE_UD_SEND_ONLY_WITH_IMMEDIATE);
	assert_int_equal(WIRE_UC | WIRE_WRITE_ONLY, IBV_OPCODE_UC_RDMA_WRITE_ONLY);
}

/* An opcode has the same headers as on RC, and those that its service adds. */
static void test_headers_of_services(void **state)
{
	unsigned int row;

	(void)state;
	for (row = 0; row < 32; row++) {
		uint16_t rc = wire_op_headers((uint8_t)row);
		uint8_t xrc = (uint8_t)(WIRE_XRC | row);

		if (wire_op_header_length((uint8_t)(WIRE_UC | row)))
			assert_int_equal(wire_op_headers((uint8_t)(WIRE_UC | row)), rc);
		if (wire_op_header_length((uint8_t)(WIRE_UD | row)))
			assert_int_equal(wire_op_headers((uint8_t)(WIRE_UD | row)),
					 rc | WIRE_HAS_DETH);
		if (wire_op_header_length(xrc))
			assert_int_equal(wire_op_headers(xrc),
					 rc | (by_hand[row].response ? 0 : WIRE_HAS_XRCETH));
	}
}

static bool is_request_by_hand(int opcode)
{
	switch (opcode & 0xe0) {
	case 0x00:
		return 0x30d81fff >> (opcode & 31) & 1;
	case 0x20:
		return 0x00000fff >> (opcode & 31) & 1;
	case 0x60:
		return 0x00000030 >> (opcode & 31) & 1;
	case 0xa0:
		return 0x00d81fff >> (opcode & 31) & 1;
	default:
		return false;
	}
}

static bool begins_message_by_hand(uint8_t next)
{
	switch (next & 31) {
	case 0x00:
	case 0x04:
	case 0x05:
	case 0x06:
	case 0x0a:
	case 0x0b:
	case 0x0c:
	case 0x13:
	case 0x14:
	case 0x17:
	case 0x1c:
	case 0x1d:
		return true;
	default:
		return false;
	}
}

/* The usual form of such rules: one case for each preceding packet. */
static bool may_follow_by_hand(int previous, uint8_t next)
{
	if (!is_request_by_hand(next))
		return false;
	if (previous == -1)
		return begins_message_by_hand(next);
	if (!is_request_by_hand(previous) || (previous & 0xe0) != (next & 0xe0))
		return false;
	switch (previous & 31) {
	case 0x00:
	case 0x01:
		switch (next & 31) {
		case 0x01:
		case 0x02:
		case 0x03:
		case 0x16:
			return true;
		default:
			return false;
		}
	case 0x06:
	case 0x07:
		switch (next & 31) {
		case 0x07:
		case 0x08:
		case 0x09:
			return true;
		default:
			return false;
		}
	default:
		return begins_message_by_hand(next);
	}
}

/* rule S5 test: a First is followed by its own Middles and Last, for all 65792 pairs. */
static void test_may_follow_all_pairs(void **state)
{
	int previous, next, allowed = 0;

	(void)state;
	for (previous = -1; previous < 256; previous++) {
		for (next = 0; next < 256; next++) {
			bool answer = wire_op_may_follow(previous, (uint8_t)next);

			if (answer != may_follow_by_hand(previous, (uint8_t)next))
				fail_msg("%s before %s: %d",
					 previous < 0 ? "nothing" : wire_op_name((uint8_t)previous),
					 wire_op_name((uint8_t)next), answer);
			allowed += answer;
		}
	}
	/* The comparison would also succeed for two functions that always return false. */
	assert_true(allowed > 300);
}

/* Families and positions: a message has First and Last of one family, or it is an Only. */
static void test_positions(void **state)
{
	(void)state;
	assert_int_equal(wire_op_position(0x02), WIRE_LAST);
	assert_int_equal(wire_op_family(0x02), WIRE_FAMILY_SEND);
	assert_int_equal(wire_op_family(0x16), WIRE_FAMILY_SEND);
	assert_int_equal(wire_op_position(0x0b), WIRE_ONLY);
	assert_int_equal(wire_op_family(0x0b), WIRE_FAMILY_WRITE);
	assert_int_equal(wire_op_family(0x0c), WIRE_FAMILY_READ);
	assert_int_equal(wire_op_position(0x0e), WIRE_MIDDLE);
	assert_int_equal(wire_op_family(0x0e), WIRE_FAMILY_READ_RESPONSE);
	assert_int_equal(wire_op_family(0x11), WIRE_FAMILY_ACK);
	assert_int_equal(wire_op_family(0x12), WIRE_FAMILY_ATOMIC_ACK);
	assert_int_equal(wire_op_family(0x13), WIRE_FAMILY_ATOMIC);
	assert_int_equal(wire_op_family(0x1c), WIRE_FAMILY_FLUSH);
	assert_int_equal(wire_op_family(0x1d), WIRE_FAMILY_ATOMIC_WRITE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table_by_hand),
		cmocka_unit_test(test_cnp),
		cmocka_unit_test(test_numbers_of_libibverbs),
		cmocka_unit_test(test_headers_of_services),
		cmocka_unit_test(test_may_follow_all_pairs),
		cmocka_unit_test(test_positions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
