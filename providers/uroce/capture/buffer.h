/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The memory between the threads that send and receive and the one that writes: a ring of records,
 * in the order of their time stamps.  A record is made before its packets leave and ended after, so
 * the reader waits for the oldest one.
 */
#ifndef UROCE_CAPTURE_BUFFER_H
#define UROCE_CAPTURE_BUFFER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CAPTURE_BUFFER_BYTES = 16 << 20,
	/* What a record may hold: the longest burst, with headers for each of its packets. */
	CAPTURE_RECORD_MAX = 128 << 10,
};

enum capture_record_state {
	CAPTURE_RECORD_OPEN,
	CAPTURE_RECORD_KEPT,
	CAPTURE_RECORD_LEFT_OUT,
};

struct capture_record {
	atomic_uint state; /* enum capture_record_state */
	uint32_t bytes;	   /* of the record with this head, a multiple of 8 */
	uint32_t used;	   /* of data */
	uint32_t packets;  /* in it */
	_Alignas(8) uint8_t data[];
};

struct capture_buffer {
	uint8_t *memory;
	pthread_mutex_t lock; /* of head, latest, stalled and closed */
	atomic_uint_fast64_t head;
	atomic_uint_fast64_t tail; /* the reader's */
	atomic_uint_fast64_t lost; /* packets that found no room */
	uint64_t latest;	   /* time of the newest record */
	bool stalled;		   /* the last wait for room was in vain */
	bool closed;
};

/* 0 or a negative errno.  The memory is touched as it is used, and not there in a forked child. */
int capture_buffer_open(struct capture_buffer *buffer);
/* Shut and read, so that no record is open.  Later calls still find that it is shut. */
void capture_buffer_close(struct capture_buffer *buffer);

/*
 * An open record with room for bytes, at most CAPTURE_RECORD_MAX, and the time (CLOCK_REALTIME, in
 * nanoseconds) that it has its place by; or NULL: closed, or no room for a tenth of a second.
 * now: 0, for what the clock says, or a time that has passed: then it is that, or the newest
 * record's if that is later.
 */
struct capture_record *capture_buffer_add(struct capture_buffer *buffer, size_t bytes,
					  uint32_t packets, uint64_t *now);
static inline void capture_buffer_end(struct capture_record *record, bool keep)
{
	atomic_store_explicit(&record->state, keep ? CAPTURE_RECORD_KEPT : CAPTURE_RECORD_LEFT_OUT,
			      memory_order_release);
}

/* No record will be added any more.  True when all that were are read. */
bool capture_buffer_shut(struct capture_buffer *buffer);

/* The reader's: the oldest record that is kept, or NULL while there is none, or it is open. */
struct capture_record *capture_buffer_oldest(struct capture_buffer *buffer);
/* ... which is done with. */
void capture_buffer_read(struct capture_buffer *buffer, const struct capture_record *record);

#endif
