/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "aeth.h"

#include <assert.h>

/* rule C4: table of credit codes. */
static const uint16_t credit_values[31] = {
	0,    1,    2,	  3,	4,    6,     8,	    12,	   16,	  24,	32,
	48,   64,   96,	  128,	192,  256,   384,   512,   768,	  1024, 1536,
	2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
};

/* Microseconds, by code; code 0 is the longest (IBA: "Encoding for RNR NAK timer field"). */
static const uint32_t rnr_timer_us[32] = {
	655360, 10,    20,    30,    40,    60,	    80,	    120,    160,    240,    320,
	480,	640,   960,   1280,  1920,  2560,   3840,   5120,   7680,   10240,  15360,
	20480,	30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520,
};

/* Two codes for each power of two: the power itself, and one and a half times it. */
uint8_t credit_encode(uint32_t credits)
{
	uint32_t power, code;

	if (credits < 2)
		return (uint8_t)credits;
	power = 31 - (uint32_t)__builtin_clz(credits);
	code = 2 * power + (credits >> (power - 1) & 1);
	return power < 15 ? (uint8_t)code : 30;
}

uint32_t credit_decode(uint8_t code)
{
	assert(code < CREDIT_CODE_UNLIMITED);
	return credit_values[code];
}

uint64_t rnr_timer_ns(uint8_t code)
{
	return (uint64_t)rnr_timer_us[code & 31] * 1000;
}

uint64_t ack_timeout_ns(uint8_t code)
{
	assert(code > 0 && code < 32);
	return (uint64_t)4096 << code;
}

uint8_t ack_timeout_used(uint8_t code)
{
	return code == 0 || code > ACK_DELAY_CODE ? code : ACK_DELAY_CODE + 1;
}
