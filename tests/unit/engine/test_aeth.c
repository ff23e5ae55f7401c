/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* The code tables, compared with a second derivation: formulas and the table of rule C4. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/base/aeth.h"

/* 0, 1, and from there on 2^k for even codes and 1.5 x 2^k for odd ones. */
static uint32_t series(unsigned int code)
{
	if (code < 2)
		return code;
	return (code & 1 ? 3u : 2u) << (code / 2 - 1);
}

/* The table of rule C4, typed again. */
static const uint32_t credit_table[31] = {
	0,    1,    2,	  3,	4,    6,     8,	    12,	   16,	  24,	32,
	48,   64,   96,	  128,	192,  256,   384,   512,   768,	  1024, 1536,
	2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
};

/* Every code stands for the printed number, which follows the series. */
static void test_credit_decode(void **state)
{
	(void)state;
	/* rule C4 test */
	for (unsigned int code = 0; code < 31; code++) {
		assert_int_equal(credit_table[code], series(code));
		assert_int_equal(credit_decode((uint8_t)code), credit_table[code]);
	}
	assert_int_equal(credit_decode(30), 32768);
}

/* Encoding gives the largest code that promises no more than there is, for every count. */
static void test_credit_encode_rounds_down(void **state)
{
	unsigned int code = 0;

	(void)state;
	/* rule C4 test */
	for (uint32_t credits = 0; credits <= 70000; credits++) {
		while (code < 30 && credit_table[code + 1] <= credits)
			code++;
		assert_int_equal(credit_encode(credits), code);
		assert_true(credit_decode(credit_encode(credits)) <= credits);
	}
	assert_int_equal(credit_encode(UINT32_MAX), 30);
}

/* 11111b is never the code of a number. */
static void test_unlimited_is_no_number(void **state)
{
	(void)state;
	/* rule C3 test */
	assert_int_equal(CREDIT_CODE_UNLIMITED, 31);
	for (uint32_t credits = 1; credits; credits <<= 1)
		assert_uint_in_range(credit_encode(credits), 0, 30);
}

/* All 32 RNR timers in hundredths of a millisecond, as printed in the specification. */
static void test_rnr_timer(void **state)
{
	static const uint32_t printed[32] = {
		65536, 1,    2,	   3,	 4,    6,     8,     12,    16,	   24,	  32,
		48,    64,   96,   128,	 192,  256,   384,   512,   768,   1024,  1536,
		2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
	};

	(void)state;
	/* rule S10 test */
	for (unsigned int code = 0; code < 32; code++) {
		/*
		 * The same series in units of 10 us, except that code 0 continues it after code 31.
		 */
		assert_int_equal(printed[code], series(code ? code : 32));
		assert_true(rnr_timer_ns((uint8_t)code) == UINT64_C(10000) * printed[code]);
	}
	assert_true(rnr_timer_ns(0) == UINT64_C(655360000));
	assert_true(rnr_timer_ns(25) == UINT64_C(61440000)); /* 61.44 ms, not 61.41 */
}

/* Local ACK Timeout: 4.096 us x 2^n. */
static void test_ack_timeout(void **state)
{
	uint64_t expected = 4096;

	(void)state;
	/* rule S10 test */
	for (unsigned int code = 1; code < 32; code++) {
		expected *= 2;
		assert_true(ack_timeout_ns((uint8_t)code) == expected);
	}
	assert_true(ack_timeout_ns(14) == UINT64_C(67108864));
	assert_true(ack_timeout_ns(31) == UINT64_C(8796093022208));
}

/* Short timeouts are rounded up to twice the ACK delay that the device reports. */
static void test_ack_timeout_used(void **state)
{
	uint64_t least = 2 * ack_timeout_ns(ACK_DELAY_CODE);

	(void)state;
	/* rule S10 test */
	assert_int_equal(ack_timeout_used(0), 0);
	for (uint8_t code = 1; code < 32; code++) {
		uint64_t asked = ack_timeout_ns(code),
			 used = ack_timeout_ns(ack_timeout_used(code));

		assert_true(used == (asked > least ? asked : least));
	}
}

/* The syndrome: bits 6 and 5 the kind, bits 4 to 0 the code; bit 7 is reserved. */
static void test_syndrome(void **state)
{
	(void)state;
	/* rule C2 test, rule S11 test */
	for (unsigned int byte = 0; byte < 256; byte++) {
		uint8_t syndrome = (uint8_t)byte;

		assert_int_equal(syndrome_kind(syndrome), (byte >> 5) & 3);
		assert_int_equal(syndrome_code(syndrome), byte & 31);
		if (byte < 128)
			assert_int_equal(
				syndrome_make(syndrome_kind(syndrome), syndrome_code(syndrome)),
				byte);
	}
	assert_int_equal(syndrome_make(AETH_ACK, CREDIT_CODE_UNLIMITED), 0x1f);
	assert_int_equal(syndrome_make(AETH_RNR_NAK, 14), 0x2e);
	assert_int_equal(syndrome_make(AETH_NAK, NAK_PSN_SEQUENCE), 0x60);
	assert_int_equal(syndrome_make(AETH_NAK, NAK_INVALID_REQUEST), 0x61);
	assert_int_equal(syndrome_make(AETH_NAK, NAK_REMOTE_ACCESS), 0x62);
	assert_int_equal(syndrome_make(AETH_NAK, NAK_REMOTE_OPERATIONAL), 0x63);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_credit_decode),
		cmocka_unit_test(test_credit_encode_rounds_down),
		cmocka_unit_test(test_unlimited_is_no_number),
		cmocka_unit_test(test_rnr_timer),
		cmocka_unit_test(test_ack_timeout),
		cmocka_unit_test(test_ack_timeout_used),
		cmocka_unit_test(test_syndrome),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
