/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Ring buffer of captured packets, between the threads that send and receive (producers) and the
 * writer thread (the one consumer).  Records are in the order of their timestamps.  A record is
 * reserved before its packets are sent and completed afterwards; the consumer stops at the first
 * record that is still open.
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
	/* Maximum size of a record: the longest burst, with headers for each of its packets. */
	CAPTURE_RECORD_MAX = 128 << 10,
};

enum capture_record_state {
	CAPTURE_RECORD_OPEN,
	CAPTURE_RECORD_COMMITTED,
	CAPTURE_RECORD_DISCARDED,
};

struct capture_record {
	atomic_uint state; /* enum capture_record_state */
	uint32_t bytes;	   /* size of the record including this header, a multiple of 8 */
	uint32_t used;	   /* bytes of data in use */
	uint32_t packets;  /* number of packets */
	_Alignas(8) uint8_t data[];
};

struct capture_buffer {
	uint8_t *memory;
	pthread_mutex_t lock; /* protects head, latest, stalled and closed */
	atomic_uint_fast64_t head;
	atomic_uint_fast64_t tail; /* written by the consumer only */
	atomic_uint_fast64_t lost; /* number of packets dropped for lack of room */
	uint64_t latest;	   /* timestamp of the newest record, ns */
	bool stalled;		   /* the last wait for room timed out */
	bool closed;
};

/* Returns 0 or a negative errno.  Pages are allocated on first use and not inherited by fork(). */
int capture_buffer_open(struct capture_buffer *buffer);
/*
 * Frees the memory.  The buffer must be closed and empty, so that no record is open.
 * capture_buffer_reserve() may still be called, and returns NULL.
 */
void capture_buffer_free(struct capture_buffer *buffer);

/*
 * Reserves a record of bytes (at most CAPTURE_RECORD_MAX) for packets packets.  In *now, 0 stands
 * for the current time and another value for an earlier CLOCK_REALTIME time in ns; on return *now
 * is the timestamp of the record, which is never below that of the previous one.  Waits for room
 * for at most 100 ms, with the caller's locks held.  Returns NULL if the buffer is closed or has no
 * room; the packets then count as lost.  Any thread.
 */
struct capture_record *capture_buffer_reserve(struct capture_buffer *buffer, size_t bytes,
					      uint32_t packets, uint64_t *now);
static inline void capture_buffer_complete(struct capture_record *record, bool keep)
{
	atomic_store_explicit(&record->state,
			      keep ? CAPTURE_RECORD_COMMITTED : CAPTURE_RECORD_DISCARDED,
			      memory_order_release);
}

/* Refuses further records.  Returns true if all records have been read. */
bool capture_buffer_close(struct capture_buffer *buffer);

/* Consumer: returns the oldest record, or NULL if there is none or it is open. */
struct capture_record *capture_buffer_peek(struct capture_buffer *buffer);
/* Consumer: frees the record that capture_buffer_peek() returned. */
void capture_buffer_pop(struct capture_buffer *buffer, const struct capture_record *record);

#endif
