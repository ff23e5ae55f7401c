/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Source ports, compared with those that the kernel's rxe has used (tests/golden/captures). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "progress/path/qp_connect.h"

/* The port of a connection is a function of both QP numbers, and the same at both ends. */
static void test_connected(void **state)
{
	static const struct {
		const char *capture;
		uint32_t qpn, dest_qpn;
		uint16_t port;
	} known[] = {
		{ "rc_send", 0x19, 0x12, 49602 },   { "rc_read", 0x2b, 0x24, 50700 },
		{ "rc_atomic", 0x2d, 0x26, 50862 }, { "rc_rnr", 0x2f, 0x28, 51032 },
		{ "srq_send", 0x1f, 0x18, 49896 },  { "srq_send", 0x20, 0x19, 49952 },
		{ "srq_send", 0x21, 0x1a, 50010 },  { "srq_send", 0x22, 0x1b, 50070 },
		{ "uc_send", 0x1c, 0x15, 49740 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		print_message("%s\n", known[i].capture);
		assert_int_equal(source_port_connected(known[i].qpn, known[i].dest_qpn),
				 known[i].port);
		assert_int_equal(source_port_connected(known[i].dest_qpn, known[i].qpn),
				 known[i].port);
	}
}

/*
 * If the REQ of the connection manager has a flow label, as in these captures, it determines the
 * port.
 */
static void test_flow_label(void **state)
{
	(void)state;
	assert_int_equal(source_port_from_flow_label(0x5f042), 61525); /* cm_rping */
	assert_int_equal(source_port_from_flow_label(0x69751), 55115); /* cm_ucmatose */
	assert_int_equal(source_port_from_flow_label(0x79719), 55047); /* cm_write_bw */
	assert_int_equal(source_port_from_flow_label(0x5df2a), 57149); /* cm_write_bw */
	/* Bits beyond the label's 20 do not count. */
	assert_int_equal(source_port_from_flow_label(0xfff5f042), 61525);
}

/* The port of a datagram QP, or of queue pair 1, is a function of its own number. */
static void test_datagram(void **state)
{
	(void)state;
	assert_int_equal(source_port_datagram(1), 55410);
	assert_int_equal(source_port_datagram(0x17), 62017); /* ud_send */
	assert_int_equal(source_port_datagram(0x1e), 56671);
	assert_int_equal(source_port_datagram(0x2f), 64756); /* cm_udaddy */
	assert_int_equal(source_port_datagram(0x36), 59411);
}

/* Large numbers use all 48 bits of the product, and the port stays in the dynamic range. */
static void test_range(void **state)
{
	uint32_t qpn = 1;

	(void)state;
	/* 0xffffff * 0xffffff = 0xfffffe000001; ^ >>20 = 0xfffff1ffffe1; ^ >>40 = ..ffff1e */
	assert_int_equal(source_port_connected(0xffffff, 0xffffff),
			 source_port_from_flow_label(0xfff1e));
	for (int i = 0; i < 100000; i++) {
		qpn = qpn * 1103515245 + 12345;
		assert_true(source_port_connected(qpn & 0xffffff, qpn >> 8) >= 0xc000);
		assert_true(source_port_datagram(qpn >> 8) >= 0xc000);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_connected),
		cmocka_unit_test(test_flow_label),
		cmocka_unit_test(test_datagram),
		cmocka_unit_test(test_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
