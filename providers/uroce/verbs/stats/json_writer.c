/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "json_writer.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "util/gid.h"

/* Returns the place for count more bytes, or NULL. */
static char *reserve(struct json_writer *json, size_t count)
{
	size_t size = 2 * json->size + count + 4096;
	char *grown;

	if (json->failed)
		return NULL;
	if (json->size - json->used >= count)
		return json->text + json->used;
	grown = realloc(json->text, size);
	json->failed = !grown;
	if (!grown)
		return NULL;
	json->text = grown;
	json->size = size;
	return grown + json->used;
}

/*
 * Writes what precedes a value: a comma unless the value is the first one, and the key.  Returns
 * the place for the value, which has count bytes, or NULL.
 */
static char *begin_value(struct json_writer *json, const char *key, size_t count)
{
	size_t length = key ? strlen(key) : 0;
	char *at = reserve(json, length + 4 + count);

	if (!at)
		return NULL;
	if (json->used > 0 && at[-1] != '{' && at[-1] != '[')
		*at++ = ',';
	if (key) {
		*at++ = '"';
		memcpy(at, key, length);
		at += length;
		*at++ = '"';
		*at++ = ':';
	}
	return at;
}

static void write_value(struct json_writer *json, const char *key, const char *value, size_t count)
{
	char *at = begin_value(json, key, count);

	if (!at)
		return;
	memcpy(at, value, count);
	json->used = (size_t)(at - json->text) + count;
}

void json_write_begin(struct json_writer *json, const char *key, char bracket)
{
	write_value(json, key, &bracket, 1);
}

void json_write_end(struct json_writer *json, char bracket)
{
	char *at = reserve(json, 1);

	if (!at)
		return;
	*at = bracket;
	json->used++;
}

/* Without snprintf(), which is slower: a queue pair has fifty numbers. */
void json_write_number(struct json_writer *json, const char *key, uint64_t number)
{
	char digits[20];
	size_t first = sizeof(digits);

	do {
		digits[--first] = (char)('0' + number % 10);
		number /= 10;
	} while (number > 0);
	write_value(json, key, digits + first, sizeof(digits) - first);
}

void json_write_bool(struct json_writer *json, const char *key, bool value)
{
	write_value(json, key, value ? "true" : "false", value ? 4 : 5);
}

void json_write_null(struct json_writer *json, const char *key)
{
	write_value(json, key, "null", 4);
}

void json_write_string(struct json_writer *json, const char *key, const char *text)
{
	static const char hex[] = "0123456789abcdef";
	char *at = begin_value(json, key, 6 * strlen(text) + 2);

	if (!at)
		return;
	*at++ = '"';
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c >= ' ' && c < 0x7f && c != '"' && c != '\\') {
			*at++ = *text;
			continue;
		}
		memcpy(at, "\\u00", 4);
		at[4] = hex[c >> 4];
		at[5] = hex[c & 15];
		at += 6;
	}
	*at++ = '"';
	json->used = (size_t)(at - json->text);
}

void json_write_address(struct json_writer *json, const char *key, const uint8_t address[16])
{
	char text[INET6_ADDRSTRLEN];

	if (gid_is_ipv4(address))
		inet_ntop(AF_INET, address + sizeof(gid_ipv4_prefix), text, sizeof(text));
	else
		inet_ntop(AF_INET6, address, text, sizeof(text));
	json_write_string(json, key, text);
}
