/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A ring of frames in memory that two processes share; one writes and one reads.  Pure: no system
 * call, no lock, no allocation.
 *
 * The sides trust each other only with the contents of frames.  What the other side can change
 * (positions, lengths) is read once and checked: an invalid value makes the ring broken until it is
 * renewed, and never leads to an access outside the ring.
 */
#ifndef UROCE_LINK_SHM_RING_H
#define UROCE_LINK_SHM_RING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include <rdma/uroce-abi.h>

enum link_ring_result {
	LINK_RING_OK,
	LINK_RING_EMPTY,  /* nothing to read */
	LINK_RING_FULL,	  /* no room for the frame: nothing was written */
	LINK_RING_BROKEN, /* the other side violates the format */
};

struct link_ring_writer {
	struct uroce_abi_ring *shared;
	uint8_t *data; /* UROCE_ABI_RING_BYTES, shared */
	uint64_t written;
	uint64_t read_seen; /* position of the reader at the last check */
};

struct link_ring_reader {
	struct uroce_abi_ring *shared;
	uint8_t *data;
	uint64_t read;
	uint64_t written_seen;
	uint64_t frame_bytes; /* space of the frame returned by link_ring_next() */
};

/* Initialize a writer, or a reader, which continues where the last one of this memory stopped. */
void link_ring_open_writer(struct link_ring_writer *ring, struct uroce_abi_ring *shared,
			   uint8_t *data);
void link_ring_open_reader(struct link_ring_reader *ring, struct uroce_abi_ring *shared,
			   uint8_t *data);

/*
 * Appends the pieces, frame->bytes in all (1 to LINK_MAX_BYTES), as one frame.  Writes nothing
 * unless the result is LINK_RING_OK.
 */
enum link_ring_result link_ring_write(struct link_ring_writer *ring,
				      const struct uroce_abi_frame *frame,
				      const struct iovec *pieces, unsigned int count);

/* Returns true if a frame of this many bytes fits. */
bool link_ring_has_room(struct link_ring_writer *ring, uint32_t bytes);

/*
 * Returns the oldest frame: copies its head, and points *bytes to its bytes in the ring, which stay
 * there until link_ring_release().  A misbehaving writer may change them at any time.
 */
enum link_ring_result link_ring_next(struct link_ring_reader *ring, struct uroce_abi_frame *frame,
				     uint8_t **bytes);
/*
 * Returns true if a frame has been written and not released; false if the ring is broken.  Any
 * thread may call it.
 */
bool link_ring_has_frame(const struct link_ring_reader *ring);
/*
 * Marks the ring as broken for the writer, which notices when it needs room, or calls
 * link_ring_is_broken(), which also returns true if the reader has renewed the ring for another
 * writer.  The writer must not call it during a write.
 */
void link_ring_set_broken(struct link_ring_reader *ring);
bool link_ring_is_broken(const struct link_ring_writer *ring);
/* Empties the ring and makes it valid; the writer must then call link_ring_open_writer(). */
void link_ring_reset(struct link_ring_reader *ring);
/* Gives the room of the frame from the last link_ring_next() back to the writer. */
void link_ring_release(struct link_ring_reader *ring);

#endif
