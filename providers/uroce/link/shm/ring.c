/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "ring.h"

#include <string.h>

#include "link/link.h"

_Static_assert(sizeof(struct uroce_abi_frame) == 16, "padding in the host ABI");
_Static_assert(sizeof(struct uroce_abi_ring) <= UROCE_ABI_RING_HEAD_BYTES, "head too small");
_Static_assert(UROCE_ABI_RING_BYTES % UROCE_ABI_RING_ALIGN == 0, "frames would cross the end");

/* A lock of the atomics library would not work across processes. */
_Static_assert(__atomic_always_lock_free(sizeof(__u64), NULL), "positions need atomic access");

/* An invalid position: not a multiple of UROCE_ABI_RING_ALIGN */
#define NO_POSITION UINT64_C(1)

/*
 * A short frame that would cross a multiple of this position goes to the start of the ring instead,
 * if the ring is empty.
 */
#define RESTART_INTERVAL UINT64_C(65536)
#define SHORT_FRAME_MAX UINT64_C(4096)
#define CACHE_LINE 64

/*
 * The positions shared by two processes are plain integers, hence the compiler's builtins and not
 * <stdatomic.h>.
 */
static uint64_t load_position(const __u64 *position)
{
	return __atomic_load_n(position, __ATOMIC_ACQUIRE);
}

static void store_position(__u64 *position, uint64_t value)
{
	__atomic_store_n(position, value, __ATOMIC_RELEASE);
}

static uint64_t frame_space(uint64_t bytes)
{
	uint64_t whole = sizeof(struct uroce_abi_frame) + bytes;

	return (whole + UROCE_ABI_RING_ALIGN - 1) / UROCE_ABI_RING_ALIGN * UROCE_ABI_RING_ALIGN;
}

/* Returns true if the two positions can belong to one ring. */
static bool positions_fit(uint64_t written, uint64_t read)
{
	return written - read <= UROCE_ABI_RING_BYTES &&
	       (written | read) % UROCE_ABI_RING_ALIGN == 0;
}

void link_ring_open_writer(struct link_ring_writer *ring, struct uroce_abi_ring *shared,
			   uint8_t *data)
{
	ring->shared = shared;
	ring->data = data;
	ring->written = load_position(&shared->written);
	/* As if the ring were full, so that the first frame reads and checks both positions. */
	ring->read_seen = ring->written - UROCE_ABI_RING_BYTES;
}

void link_ring_open_reader(struct link_ring_reader *ring, struct uroce_abi_ring *shared,
			   uint8_t *data)
{
	ring->shared = shared;
	ring->data = data;
	ring->read = load_position(&shared->read);
	ring->written_seen = ring->read;
	ring->frame_bytes = 0;
}

static enum link_ring_result check_space(struct link_ring_writer *ring, uint64_t space)
{
	uint64_t read;

	if (positions_fit(ring->written + space, ring->read_seen))
		return LINK_RING_OK;
	read = load_position(&ring->shared->read);
	if (!positions_fit(ring->written, read))
		return LINK_RING_BROKEN;
	ring->read_seen = read;
	return positions_fit(ring->written + space, ring->read_seen) ? LINK_RING_OK
								     : LINK_RING_FULL;
}

static bool reader_has_caught_up(struct link_ring_writer *ring)
{
	uint64_t read = load_position(&ring->shared->read);

	if (read != ring->written)
		return false;
	ring->read_seen = read;
	return true;
}

/*
 * Returns the number of bytes to skip up to the end of the ring if the frame must go to the start,
 * or 0.  That is so if it does not fit before the end, or if it is short and would cross a multiple
 * of RESTART_INTERVAL and the ring is empty: an exchange of short frames then uses few pages of the
 * ring.  Long frames do not return early, since the skipped bytes cannot be used until the reader
 * has passed them.
 */
static uint64_t skipped_bytes(struct link_ring_writer *ring, uint64_t space)
{
	uint64_t at = ring->written % UROCE_ABI_RING_BYTES, to_end = UROCE_ABI_RING_BYTES - at;

	if (space > to_end)
		return to_end;
	if (space > SHORT_FRAME_MAX || space > at ||
	    at / RESTART_INTERVAL == (at + space - 1) / RESTART_INTERVAL)
		return 0;
	return reader_has_caught_up(ring) ? to_end : 0;
}

bool link_ring_has_room(struct link_ring_writer *ring, uint32_t bytes)
{
	uint64_t space = frame_space(bytes);

	return check_space(ring, skipped_bytes(ring, space) + space) == LINK_RING_OK;
}

enum link_ring_result link_ring_write(struct link_ring_writer *ring,
				      const struct uroce_abi_frame *frame,
				      const struct iovec *pieces, unsigned int count)
{
	static const struct uroce_abi_frame skip;
	uint64_t at = ring->written % UROCE_ABI_RING_BYTES, space = frame_space(frame->bytes);
	uint64_t skipped = skipped_bytes(ring, space);
	enum link_ring_result result = check_space(ring, skipped + space);
	uint8_t *out;

	if (result != LINK_RING_OK)
		return result;
	if (skipped) {
		memcpy(ring->data + at, &skip, sizeof(skip));
		at = 0;
	}
	out = ring->data + at;
	memcpy(out, frame, sizeof(*frame));
	out += sizeof(*frame);
	for (unsigned int i = 0; i < count; i++) {
		memcpy(out, pieces[i].iov_base, pieces[i].iov_len);
		out += pieces[i].iov_len;
	}
	ring->written += skipped + space;
	store_position(&ring->shared->written, ring->written);
	return LINK_RING_OK;
}

/*
 * Prefetches the place of the next frame, so that a short frame is in the cache when the writer
 * makes it visible.
 */
static inline void prefetch_frame(const struct link_ring_reader *ring)
{
	const uint8_t *next = ring->data + ring->read % UROCE_ABI_RING_BYTES;

	__builtin_prefetch(next);
	__builtin_prefetch(next + CACHE_LINE - 1);
}

enum link_ring_result link_ring_next(struct link_ring_reader *ring, struct uroce_abi_frame *frame,
				     uint8_t **bytes)
{
	uint64_t at, to_end, space, written;

	for (;;) {
		if (ring->read == ring->written_seen) {
			prefetch_frame(ring);
			written = load_position(&ring->shared->written);
			if (!positions_fit(written, ring->read))
				return LINK_RING_BROKEN;
			ring->written_seen = written;
		}
		if (ring->read == ring->written_seen)
			return LINK_RING_EMPTY;
		at = ring->read % UROCE_ABI_RING_BYTES;
		to_end = UROCE_ABI_RING_BYTES - at;
		memcpy(frame, ring->data + at, sizeof(*frame));
		/* The copy is checked and used, because the writer may change the original. */
		__asm__ volatile("" ::: "memory");
		if (frame->bytes)
			break;
		if (at == 0 || to_end > ring->written_seen - ring->read)
			return LINK_RING_BROKEN;
		/*
		 * Published at once: the writer of short frames returns to the start only if the
		 * ring is empty, and would count the skipped bytes as used until this frame is
		 * released.
		 */
		ring->read += to_end;
		store_position(&ring->shared->read, ring->read);
	}
	space = frame_space(frame->bytes);
	if (frame->bytes > LINK_MAX_BYTES || space > to_end ||
	    space > ring->written_seen - ring->read)
		return LINK_RING_BROKEN;
	*bytes = ring->data + at + sizeof(*frame);
	ring->frame_bytes = space;
	return LINK_RING_OK;
}

bool link_ring_has_frame(const struct link_ring_reader *ring)
{
	uint64_t written = load_position(&ring->shared->written),
		 read = load_position(&ring->shared->read);

	return written != read && positions_fit(written, read);
}

void link_ring_set_broken(struct link_ring_reader *ring)
{
	store_position(&ring->shared->read, NO_POSITION);
}

bool link_ring_is_broken(const struct link_ring_writer *ring)
{
	return ring->written != load_position(&ring->shared->written) ||
	       !positions_fit(ring->written, load_position(&ring->shared->read));
}

void link_ring_reset(struct link_ring_reader *ring)
{
	store_position(&ring->shared->written, 0);
	store_position(&ring->shared->read, 0);
	link_ring_open_reader(ring, ring->shared, ring->data);
}

void link_ring_release(struct link_ring_reader *ring)
{
	ring->read += ring->frame_bytes;
	ring->frame_bytes = 0;
	store_position(&ring->shared->read, ring->read);
}
