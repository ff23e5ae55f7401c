/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* JSON written by the provider and read by jansson. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "verbs/stats/json_writer.h"

static json_t *parse(struct json_writer *json)
{
	json_t *value = json_loadb(json->text, json->used, 0, NULL);

	assert_false(json->failed);
	assert_non_null(value);
	free(json->text);
	return value;
}

static void every_kind_of_value(void **state)
{
	static const uint8_t ipv4[16] = { [10] = 0xff, 0xff, 10, 0, 2, 255 },
			     ipv6[16] = { 0xfe, 0x80 };
	struct json_writer json = { 0 };
	json_t *value, *expected;

	(void)state;
	json_write_begin(&json, NULL, '{');
	json_write_number(&json, "zero", 0);
	json_write_number(&json, "most", INT64_MAX);
	json_write_begin(&json, "list", '[');
	json_write_begin(&json, NULL, '{');
	json_write_end(&json, '}');
	json_write_begin(&json, NULL, '[');
	json_write_end(&json, ']');
	json_write_bool(&json, NULL, true);
	json_write_bool(&json, NULL, false);
	json_write_null(&json, NULL);
	json_write_end(&json, ']');
	json_write_address(&json, "ipv4", ipv4);
	json_write_address(&json, "ipv6", ipv6);
	json_write_string(&json, "empty", "");
	json_write_end(&json, '}');
	value = parse(&json);
	expected = json_pack("{s:i,s:I,s:[{},[],b,b,n],s:s,s:s,s:s}", "zero", 0, "most",
			     (json_int_t)INT64_MAX, "list", 1, 0, "ipv4", "10.0.2.255", "ipv6",
			     "fe80::", "empty", "");
	assert_non_null(expected);
	assert_true(json_equal(value, expected));
	json_decref(value);
	json_decref(expected);
}

/* Bytes above 7Fh are U+0080 to U+00FF: two bytes of UTF-8 each. */
static void every_byte_of_a_string(void **state)
{
	struct json_writer json = { 0 };
	char text[256] = "", expected[512] = "";
	size_t length = 0;
	json_t *value;

	(void)state;
	for (unsigned int c = 1; c < 256; c++) {
		text[c - 1] = (char)c;
		if (c >= 0x80)
			expected[length++] = (char)(0xc0 | c >> 6);
		expected[length++] = (char)(c >= 0x80 ? 0x80 | (c & 0x3f) : c);
	}
	json_write_begin(&json, NULL, '[');
	json_write_string(&json, NULL, text);
	json_write_end(&json, ']');
	value = parse(&json);
	assert_string_equal(json_string_value(json_array_get(value, 0)), expected);
	json_decref(value);
}

static void many_values(void **state)
{
	enum { COUNT = 100000 };
	struct json_writer json = { 0 };
	json_t *value;

	(void)state;
	json_write_begin(&json, NULL, '[');
	for (uint64_t i = 0; i < COUNT; i++)
		json_write_number(&json, NULL, i * i);
	json_write_end(&json, ']');
	value = parse(&json);
	assert_int_equal(json_array_size(value), COUNT);
	for (uint64_t i = 0; i < COUNT; i++)
		assert_int_equal(json_integer_value(json_array_get(value, i)), i * i);
	json_decref(value);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_of_value),
		cmocka_unit_test(every_byte_of_a_string),
		cmocka_unit_test(many_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
