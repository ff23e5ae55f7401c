/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * One side of fuzz_engine: an engine with its queues and memory regions, set up by a script, and
 * the checks of its completions.
 */
#ifndef UROCE_TESTS_FUZZ_ENGINE_SIDE_H
#define UROCE_TESTS_FUZZ_ENGINE_SIDE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/engine.h"

#define require(holds)                                                              \
	do {                                                                        \
		if (!(holds)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #holds); \
			abort();                                                    \
		}                                                                   \
	} while (0)

enum {
	SIDES = 2,
	SLOTS = 16,
	REPLAY_DEPTH = 16,
	MAX_SGE = 3,
	MAX_INLINE = 64,
	REGIONS = 5,
	STAGING_BYTES = 16384,
	MAX_PIECES = 64,
	SMALL_REGION = 3000,
	QPN = 0x100,
	QKEY = 0x1234,
};

/* Keys are these numbers plus 0x10 x side; region FOLDED is 4 GB of addresses on one page. */
enum region_kind {
	BOTH,	 /* all rights */
	SOURCE,	 /* may be read by the peer and by us, and never written */
	PRIVATE, /* may be written by us, not touched by the peer */
	TARGET,	 /* may be written by the peer, not read */
	FOLDED,
};

struct region {
	uint8_t *bytes;
	uint64_t length;
	uint32_t access;
	bool gone;
};

struct side {
	struct eng_qp *qp;
	void *replay;
	struct eng_ring sq, rq;
	struct region regions[REGIONS];
	struct eng_burst burst; /* the last one, for eng_tx_rollback() */
	struct eng_piece pieces[MAX_PIECES];
	uint8_t staging[STAGING_BYTES];
	bool has_burst;
	bool datagrams; /* UD */
	bool reliable;	/* RC */
	/* UC and UD: packets that the requests posted since RESET may still send; others: unused */
	uint64_t packets_due;
	uint64_t next_send, next_recv; /* wr_id of the next request to post */
	uint64_t done_send, done_recv; /* lowest wr_id that may complete next */
	unsigned int number;
};

/* The script, and the time that it has reached. */
struct script {
	const uint8_t *data;
	size_t left;
	uint64_t now;
};
extern struct script script;

/* In-flight budget of both sides. */
extern struct eng_inflight_budget share;

/* The next number of the script, zero when it has ended. */
uint8_t next8(void);
uint32_t next32(void);

uint64_t region_va(unsigned int kind);
uint32_t region_key(const struct side *side, unsigned int kind);

void side_make(struct side *side, unsigned int number, enum eng_qp_type type, uint32_t mtu);
void side_free(struct side *side);
/* Moves the queue pair through RESET up to the state to. */
void side_raise(struct side *side, enum eng_qp_state to);
void side_post_send(struct side *side);
void side_post_recv(struct side *side);
/* Checks the invariants, which hold at any time. */
void side_check(struct side *side);

#endif
