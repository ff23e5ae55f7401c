/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * For the tests of progress: RC queue pairs without verbs, on 127.0.0.1.  Keys mean nothing, an
 * address is an address; completions are counted and the last ones kept.
 */
#ifndef UROCE_TESTS_PROGRESS_END_H
#define UROCE_TESTS_PROGRESS_END_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "progress/progress.h"

#define END_SLOTS 128

struct progress_end {
	struct progress *progress;
	struct progress_qp qp;
	void *replay;
	struct eng_ring sq, rq;
	uint8_t *sq_slots, *rq_slots;
	uint32_t timeout_code; /* of end_connect(); 14 (67 ms) unless set before */
	uint32_t retry_count;  /* 7 unless set before */
	/* Written in callbacks, read by the test. */
	atomic_uint sent;     /* send completions */
	atomic_uint received; /* receive completions */
	atomic_uint failed;   /* of both kinds, not successful */
	atomic_uint last_status;
	atomic_uint lengths[END_SLOTS]; /* byte_len of the n-th receive completion */
	atomic_uint_fast64_t received_ids[END_SLOTS];
};

extern const uint8_t end_loopback[16]; /* 127.0.0.1 */

/* Unless NULL, called in the middle of sending, by the thread that sends what an end has posted. */
extern void (*end_mapping)(void);

/* The instance, with no hooks; fails the test with its complaint. */
struct progress *get_progress(void);

/* A QP in RESET, then connected to dest_qpn at 127.0.0.1 and moved to RTS. */
void end_open(struct progress_end *end, struct progress *progress);
/* The same of another type (ENG_UC). */
void end_open_as(struct progress_end *end, struct progress *progress, enum eng_qp_type type);
void end_connect(struct progress_end *end, uint32_t dest_qpn);
void end_pair(struct progress_end *a, struct progress_end *b, struct progress *progress);
void end_close(struct progress_end *end);

/* Post one request; false when the queue is full. */
bool end_send(struct progress_end *end, const void *bytes, uint32_t length);
bool end_write(struct progress_end *end, const void *bytes, uint32_t length, void *remote);
bool end_receive(struct progress_end *end, void *bytes, uint32_t length);

/* Poll until *counter has come to value, at most some seconds; false when it has not. */
bool end_poll_for(struct progress *progress, atomic_uint *counter, unsigned int value);
/* The same without polling: the helper has to do it. */
bool end_wait_for(atomic_uint *counter, unsigned int value);

uint64_t progress_count(struct progress *progress, enum progress_counter counter);

#endif
