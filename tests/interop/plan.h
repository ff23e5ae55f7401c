/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Requests of one end of a connection to the other: a sequence that both ends compute from the same
 * options, so that each knows what must arrive.
 */
#ifndef INTEROP_PLAN_H
#define INTEROP_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kind { SEND, SEND_IMM, WRITE, WRITE_IMM, READ, FETCH_ADD, CMP_SWAP, KINDS };

enum { MAX_SIZES = 32, ATOMIC_BYTES = 8 };

/* Options that the plans of all connections and of both directions share. */
struct plan_options {
	enum kind kinds[KINDS];
	unsigned int kind_count;
	uint32_t sizes[MAX_SIZES]; /* used in turn, each with all kinds; none: random sizes */
	unsigned int size_count;
	uint32_t min_size; /* minimum of random sizes, bytes */
	uint32_t max_size; /* bytes */
};

struct request {
	uint32_t number;
	enum kind kind;
	uint32_t size;	/* bytes */
	uint32_t shift; /* bytes from the beginning of its place in memory */
	uint64_t seed;	/* generates the payload; an Atomic adds it or swaps it in */
};

/* Returns the request with this number that the client, or the server, sends. */
struct request plan_request(const struct plan_options *options, bool from_client,
			    unsigned int connection, uint32_t number);

bool plan_takes_receive(enum kind kind);
const char *plan_kind_name(enum kind kind);

/*
 * Writes, and compares, the payload of a seed; the comparison returns the first difference, or -1.
 */
void plan_fill(uint8_t *bytes, size_t size, uint64_t seed);
long plan_difference(const uint8_t *bytes, size_t size, uint64_t seed);

/* Parse the options: letters of kinds ("siwWrfc"), sizes ("0,1,5").  Return false on an error. */
bool plan_parse_kinds(struct plan_options *options, const char *letters);
bool plan_parse_sizes(struct plan_options *options, const char *list);

#endif
