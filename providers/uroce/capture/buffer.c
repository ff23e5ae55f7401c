/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "buffer.h"

#include <assert.h>
#include <errno.h>
#include <sys/mman.h>

#include "link/fd.h"

enum {
	ALIGNMENT = 8,
	WAIT_NS = 100000,
	/*
	 * 100 ms in all.  The caller holds the locks of a QP; with longer waits peers would exhaust
	 * their retries.
	 */
	WAITS_MAX = 1000,
};

_Static_assert(sizeof(struct capture_record) % ALIGNMENT == 0, "records have to follow each other");

int capture_buffer_open(struct capture_buffer *buffer)
{
	void *memory = mmap(NULL, CAPTURE_BUFFER_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return -errno;
	madvise(memory, CAPTURE_BUFFER_BYTES, MADV_DONTFORK);
	buffer->memory = memory;
	pthread_mutex_init(&buffer->lock, NULL);
	atomic_init(&buffer->head, 0);
	atomic_init(&buffer->tail, 0);
	atomic_init(&buffer->lost, 0);
	buffer->latest = 0;
	buffer->stalled = false;
	buffer->closed = false;
	return 0;
}

void capture_buffer_free(struct capture_buffer *buffer)
{
	munmap(buffer->memory, CAPTURE_BUFFER_BYTES);
}

static struct capture_record *record_at(struct capture_buffer *buffer, uint64_t position)
{
	return (struct capture_record *)(void *)(buffer->memory + position % CAPTURE_BUFFER_BYTES);
}

static uint64_t free_bytes(const struct capture_buffer *buffer, uint64_t head)
{
	return CAPTURE_BUFFER_BYTES -
	       (head - atomic_load_explicit(&buffer->tail, memory_order_acquire));
}

/* Number of bytes to skip before the end of the ring, as a record is contiguous. */
static uint64_t padding_before(uint64_t head, uint64_t bytes)
{
	uint64_t left = CAPTURE_BUFFER_BYTES - head % CAPTURE_BUFFER_BYTES;

	return left < bytes ? left : 0;
}

static void add_padding(struct capture_buffer *buffer, uint64_t head, uint64_t padding)
{
	struct capture_record *record = record_at(buffer, head);

	/* The gap may be too short for the other fields. */
	_Static_assert(offsetof(struct capture_record, used) == ALIGNMENT, "a gap has no room");
	record->bytes = (uint32_t)padding;
	atomic_store_explicit(&record->state, CAPTURE_RECORD_DISCARDED, memory_order_relaxed);
}

/* Returns NULL if there is no room.  Caller holds the lock. */
static struct capture_record *try_reserve(struct capture_buffer *buffer, uint64_t bytes)
{
	uint64_t head = atomic_load_explicit(&buffer->head, memory_order_relaxed);
	uint64_t padding = padding_before(head, bytes), room = free_bytes(buffer, head);
	struct capture_record *record;

	if (padding + bytes > room || (buffer->stalled && room < CAPTURE_BUFFER_BYTES / 2))
		return NULL;
	buffer->stalled = false;
	if (padding)
		add_padding(buffer, head, padding);
	head += padding;
	record = record_at(buffer, head);
	record->bytes = (uint32_t)bytes;
	atomic_store_explicit(&record->state, CAPTURE_RECORD_OPEN, memory_order_relaxed);
	atomic_store_explicit(&buffer->head, head + bytes, memory_order_release);
	return record;
}

/* Caller holds the lock, so that records are in the order of their timestamps. */
static uint64_t next_timestamp(struct capture_buffer *buffer, uint64_t earlier)
{
	if (!earlier)
		buffer->latest = clock_ns(CLOCK_REALTIME);
	else if (buffer->latest < earlier)
		buffer->latest = earlier;
	return buffer->latest;
}

struct capture_record *capture_buffer_reserve(struct capture_buffer *buffer, size_t bytes,
					      uint32_t packets, uint64_t *now)
{
	const struct timespec pause = { .tv_nsec = WAIT_NS };
	uint64_t size =
		(sizeof(struct capture_record) + bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	struct capture_record *record;
	int waits = 0;

	assert(bytes <= CAPTURE_RECORD_MAX);
	pthread_mutex_lock(&buffer->lock);
	while (!buffer->closed) {
		record = try_reserve(buffer, size);
		if (record) {
			*now = next_timestamp(buffer, *now);
			pthread_mutex_unlock(&buffer->lock);
			record->packets = packets;
			return record;
		}
		if (buffer->stalled || waits++ == WAITS_MAX) {
			buffer->stalled = true;
			atomic_fetch_add_explicit(&buffer->lost, packets, memory_order_relaxed);
			break;
		}
		pthread_mutex_unlock(&buffer->lock);
		nanosleep(&pause, NULL);
		pthread_mutex_lock(&buffer->lock);
	}
	pthread_mutex_unlock(&buffer->lock);
	return NULL;
}

bool capture_buffer_close(struct capture_buffer *buffer)
{
	bool read;

	pthread_mutex_lock(&buffer->lock);
	buffer->closed = true;
	read = atomic_load(&buffer->head) == atomic_load(&buffer->tail);
	pthread_mutex_unlock(&buffer->lock);
	return read;
}

void capture_buffer_pop(struct capture_buffer *buffer, const struct capture_record *record)
{
	uint64_t tail = atomic_load_explicit(&buffer->tail, memory_order_relaxed);

	atomic_store_explicit(&buffer->tail, tail + record->bytes, memory_order_release);
}

struct capture_record *capture_buffer_peek(struct capture_buffer *buffer)
{
	for (;;) {
		uint64_t tail = atomic_load_explicit(&buffer->tail, memory_order_relaxed);
		struct capture_record *record = record_at(buffer, tail);

		if (tail == atomic_load_explicit(&buffer->head, memory_order_acquire))
			return NULL;
		switch (atomic_load_explicit(&record->state, memory_order_acquire)) {
		case CAPTURE_RECORD_COMMITTED:
			return record;
		case CAPTURE_RECORD_DISCARDED:
			capture_buffer_pop(buffer, record);
			break;
		default:
			return NULL;
		}
	}
}
