/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A JSON text in a growing buffer.  The provider does not use libjansson: the user's program may
 * have another library with the same symbols.
 */
#ifndef UROCE_VERBS_JSON_WRITER_H
#define UROCE_VERBS_JSON_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed at first.  The owner frees text. */
struct json_writer {
	char *text; /* used bytes, without a NUL */
	size_t used, size;
	bool failed; /* no memory: text is incomplete */
};

/*
 * Each function adds one value: the element of an array if key is NULL, otherwise a member of an
 * object.  Keys are not escaped.
 */
/* bracket: '{' begins an object, '[' an array. */
void json_write_begin(struct json_writer *json, const char *key, char bracket);
/* bracket: '}' or ']' */
void json_write_end(struct json_writer *json, char bracket);
void json_write_number(struct json_writer *json, const char *key, uint64_t number);
void json_write_bool(struct json_writer *json, const char *key, bool value);
void json_write_null(struct json_writer *json, const char *key);
/* The text may have arbitrary bytes: those that are not ASCII become U+0080 to U+00FF. */
void json_write_string(struct json_writer *json, const char *key, const char *text);
/* Adds an IPv6 address, or an IPv4 address that is mapped to one, as a string. */
void json_write_address(struct json_writer *json, const char *key, const uint8_t address[16]);

#endif
