/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "pcapng_reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct pcapng_file file;

static uint32_t u32_at(size_t offset)
{
	uint32_t value;

	assert_true(offset + 4 <= file.length);
	memcpy(&value, file.bytes + offset, 4);
	return value;
}

static uint16_t u16_at(size_t offset)
{
	uint16_t value;

	assert_true(offset + 2 <= file.length);
	memcpy(&value, file.bytes + offset, 2);
	return value;
}

/*
 * Returns the offset of the value of the option with this code in [from, to), and its length; 0 if
 * there is no such option.  Value and padding must be in [from, to), too.
 */
static size_t find_option(size_t from, size_t to, uint16_t code, uint16_t *length)
{
	assert_true(from <= to);
	while (from < to) {
		uint16_t found;

		assert_true(from + 4 <= to);
		found = u16_at(from);
		*length = u16_at(from + 2);
		if (found == 0) {
			assert_int_equal(*length, 0);
			assert_int_equal(from + 4, to);
			return 0;
		}
		assert_true(from + 4 + (*length + 3u) / 4 * 4 <= to);
		if (found == code)
			return from + 4;
		from += 4 + (*length + 3u) / 4 * 4;
	}
	return 0;
}

static void parse_interface(size_t at, uint32_t length)
{
	uint16_t bytes;
	size_t option;

	assert_true(length >= 20);
	assert_int_equal(u16_at(at + 8), 1); /* Ethernet */
	file.snaplen = u32_at(at + 12);
	option = find_option(at + 16, at + length - 4, 9, &bytes);
	assert_true(option && bytes == 1 && file.bytes[option] == 9); /* nanoseconds */
	option = find_option(at + 16, at + length - 4, 11, &bytes);
	if (option) {
		/* The first byte is the language of the filter. */
		assert_true(bytes >= 1 && bytes <= sizeof(file.filter));
		memcpy(file.filter, file.bytes + option + 1, bytes - 1u);
	}
}

static void parse_packet(size_t at, uint32_t length)
{
	struct pcapng_seen *seen = &file.packet[file.packets++];
	size_t options, option;
	uint16_t bytes;

	assert_true(file.packets < PCAPNG_SEEN_MAX);
	assert_true(length >= 32);
	assert_int_equal(u32_at(at + 8), 0);
	seen->time = (uint64_t)u32_at(at + 12) << 32 | u32_at(at + 16);
	seen->captured = u32_at(at + 20);
	seen->original = u32_at(at + 24);
	assert_true(seen->captured <= seen->original && seen->captured <= file.snaplen);
	assert_true(seen->captured <= length - 32);
	options = at + 28 + (seen->captured + 3) / 4 * 4;
	memcpy(seen->bytes, file.bytes + at + 28,
	       seen->captured < sizeof(seen->bytes) ? seen->captured : sizeof(seen->bytes));
	option = find_option(options, at + length - 4, 2, &bytes);
	assert_true(option && bytes == 4);
	seen->flags = u32_at(option);
	seen->comment[0] = '\0';
	option = find_option(options, at + length - 4, 1, &bytes);
	if (option) {
		assert_true(bytes < sizeof(seen->comment));
		memcpy(seen->comment, file.bytes + option, bytes);
		seen->comment[bytes] = '\0';
	}
}

static void parse_statistics(size_t at, uint32_t length)
{
	uint16_t bytes;
	size_t option;

	assert_true(length >= 24);
	option = find_option(at + 20, at + length - 4, 4, &bytes);
	assert_true(option && bytes == 8);
	memcpy(&file.received, file.bytes + option, 8);
	option = find_option(at + 20, at + length - 4, 5, &bytes);
	assert_true(option && bytes == 8);
	memcpy(&file.dropped, file.bytes + option, 8);
	file.statistics++;
}

/* Returns true if a block at at may have this length. */
static bool is_length(size_t at, uint32_t length)
{
	return length >= 12 && length % 4 == 0 && at + length <= file.length;
}

static void parse_blocks(void)
{
	size_t at = 0;

	while (at < file.length) {
		uint32_t type = u32_at(at), length = u32_at(at + 4);
		uint16_t version[2];

		assert_true(is_length(at, length));
		assert_int_equal(u32_at(at + length - 4), length);
		if (at == 0) {
			assert_true(length >= 28);
			assert_int_equal(type, 0x0a0d0d0a);
			assert_int_equal(u32_at(8), 0x1a2b3c4d);
			memcpy(version, file.bytes + 12, sizeof(version));
			assert_int_equal(version[0], 1);
			assert_int_equal(version[1], 0);
		} else if (type == 1) {
			parse_interface(at, length);
		} else if (type == 5) {
			parse_statistics(at, length);
		} else if (type == 6) {
			parse_packet(at, length);
		} else {
			assert_true(type >> 31); /* for local use */
			file.fillers++;
		}
		at += length;
	}
}

static void load(const char *name)
{
	struct stat status;
	int fd = open(name, O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &status), 0);
	memset(&file, 0, offsetof(struct pcapng_file, packet));
	file.length = (size_t)status.st_size;
	file.bytes = malloc(file.length + 1);
	assert_int_equal(read(fd, file.bytes, file.length), (ssize_t)file.length);
	close(fd);
}

static void unload(void)
{
	free(file.bytes);
	file.bytes = NULL;
}

bool pcapng_is_whole(const char *name)
{
	size_t at = 0;

	load(name);
	while (file.length - at >= 12) {
		uint32_t length = u32_at(at + 4);

		if (!is_length(at, length) || u32_at(at + length - 4) != length)
			break;
		at += length;
	}
	unload();
	return at > 0 && at == file.length;
}

const struct pcapng_file *pcapng_read(const char *name)
{
	load(name);
	parse_blocks();
	unload();
	for (unsigned int i = 1; i < file.packets; i++)
		assert_true(file.packet[i].time >= file.packet[i - 1].time);
	return &file;
}
