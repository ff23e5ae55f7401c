/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "plan.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_SHIFT = 61 };

static const struct {
	char letter;
	bool takes_receive;
	const char *name;
} kinds[KINDS] = {
	/* clang-format off */
	[SEND]      = { 's', true,  "SEND" },
	[SEND_IMM]  = { 'i', true,  "SEND with immediate" },
	[WRITE]     = { 'w', false, "WRITE" },
	[WRITE_IMM] = { 'W', true,  "WRITE with immediate" },
	[READ]      = { 'r', false, "READ" },
	[FETCH_ADD] = { 'f', false, "FETCH_ADD" },
	[CMP_SWAP]  = { 'c', false, "CMP_SWAP" },
	/* clang-format on */
};

bool plan_takes_receive(enum kind kind)
{
	return kinds[kind].takes_receive;
}

const char *plan_kind_name(enum kind kind)
{
	return kinds[kind].name;
}

/* The finalizer of splitmix64: neighboring numbers give unrelated results. */
static uint64_t scatter(uint64_t x)
{
	x += 0x9E3779B97F4A7C15;
	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
	x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
	return x ^ (x >> 31);
}

/* Small sizes are as frequent as large ones: first the number of bits is random, then the bits. */
static uint32_t random_size(const struct plan_options *options, uint64_t random)
{
	unsigned int bits = 0;

	while (options->max_size >> bits)
		bits++;
	bits = random % (bits + 1);
	random = scatter(random) & ((UINT64_C(1) << bits) - 1);
	if (random < options->min_size)
		return options->min_size;
	return random < options->max_size ? (uint32_t)random : options->max_size;
}

struct request plan_request(const struct plan_options *options, bool from_client,
			    unsigned int connection, uint32_t number)
{
	uint64_t random =
		scatter((uint64_t)connection << 33 | (uint64_t)from_client << 32 | number);
	struct request request = { .number = number, .seed = random | 1 };

	if (options->size_count) {
		request.kind = options->kinds[number % options->kind_count];
		request.size = options->sizes[number / options->kind_count % options->size_count];
	} else {
		request.kind = options->kinds[(random >> 32) % options->kind_count];
		request.size = random_size(options, scatter(random));
	}
	if (request.kind == FETCH_ADD || request.kind == CMP_SWAP)
		request.size = ATOMIC_BYTES;
	else
		request.shift = number % MAX_SHIFT;
	return request;
}

void plan_fill(uint8_t *bytes, size_t size, uint64_t seed)
{
	for (size_t at = 0; at < size; at += sizeof(seed)) {
		size_t part = size - at < sizeof(seed) ? size - at : sizeof(seed);

		memcpy(bytes + at, &seed, part);
		seed = scatter(seed);
	}
}

long plan_difference(const uint8_t *bytes, size_t size, uint64_t seed)
{
	for (size_t at = 0; at < size; at += sizeof(seed)) {
		size_t part = size - at < sizeof(seed) ? size - at : sizeof(seed);

		if (memcmp(bytes + at, &seed, part) != 0)
			return (long)at;
		seed = scatter(seed);
	}
	return -1;
}

bool plan_parse_kinds(struct plan_options *options, const char *letters)
{
	options->kind_count = 0;
	for (; *letters; letters++) {
		unsigned int kind = 0;

		while (kind < KINDS && kinds[kind].letter != *letters)
			kind++;
		if (kind == KINDS || options->kind_count == KINDS)
			return false;
		options->kinds[options->kind_count++] = (enum kind)kind;
	}
	return options->kind_count > 0;
}

bool plan_parse_sizes(struct plan_options *options, const char *list)
{
	options->size_count = 0;
	for (;;) {
		char *end;
		unsigned long size = strtoul(list, &end, 10);

		if (end == list || options->size_count == MAX_SIZES)
			return false;
		options->sizes[options->size_count++] = (uint32_t)size;
		if (size > options->max_size)
			options->max_size = (uint32_t)size;
		if (*end == '\0')
			return true;
		list = end + 1;
	}
}
