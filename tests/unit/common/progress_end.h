/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Queue pairs on 127.0.0.1 without verbs, for the tests of progress.  Keys are ignored, and
 * addresses are pointers of this process; completions are counted, and the last receive completions
 * are recorded.
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
	atomic_uint failed;   /* completions of both kinds with an error status */
	atomic_uint last_status;
	atomic_uint lengths[END_SLOTS]; /* byte_len of the n-th receive completion */
	atomic_uint_fast64_t received_ids[END_SLOTS];
};

extern const uint8_t end_loopback[16]; /* 127.0.0.1 */

/*
 * Unless NULL, called whenever the engine maps local memory; for a send this is in the middle of
 * sending, on the thread that sends.
 */
extern void (*end_mapping)(void);

/* Returns the progress instance, without hooks; fails the test with its error text on error. */
struct progress *get_progress(void);

/*
 * end_open() creates an RC QP in INIT; end_connect() connects it to dest_qpn at 127.0.0.1 and moves
 * it to RTS.
 */
void end_open(struct progress_end *end, struct progress *progress);
/* end_open() for another type (ENG_UC). */
void end_open_as(struct progress_end *end, struct progress *progress, enum eng_qp_type type);
void end_connect(struct progress_end *end, uint32_t dest_qpn);
void end_pair(struct progress_end *a, struct progress_end *b, struct progress *progress);
void end_close(struct progress_end *end);

/* Post one request.  Return false if the queue is full. */
bool end_send(struct progress_end *end, const void *bytes, uint32_t length);
bool end_write(struct progress_end *end, const void *bytes, uint32_t length, void *remote);
bool end_receive(struct progress_end *end, void *bytes, uint32_t length);

/* Far above the time that any wait here takes, even on a busy machine under a sanitizer. */
#define END_PATIENCE_NS UINT64_C(20000000000)

/* Polls until *counter has reached value.  Returns false if it has not within END_PATIENCE_NS. */
bool end_poll_for(struct progress *progress, atomic_uint *counter, unsigned int value);
/* end_poll_for() without polling: the progress thread must do the work. */
bool end_wait_for(atomic_uint *counter, unsigned int value);

uint64_t progress_count(struct progress *progress, enum progress_counter counter);

#endif
