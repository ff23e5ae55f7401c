/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A ring of frames in memory that two processes share, one of which writes and one reads.  Pure: no
 * system call, no lock, no allocation.
 *
 * The sides trust each other with the contents of frames only.  What the other side can change
 * (positions, lengths) is read once and checked: a wrong value makes the ring broken for good, and
 * never leads to an access outside of it.
 */
#ifndef UROCE_LINK_RING_H
#define UROCE_LINK_RING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include <rdma/uroce-abi.h>

enum link_ring_result {
	LINK_RING_OK,
	LINK_RING_EMPTY,  /* nothing to read */
	LINK_RING_FULL,	  /* no room for the frame: nothing was written */
	LINK_RING_BROKEN, /* the other side does not keep to the format */
};

struct link_ring_writer {
	struct uroce_abi_ring *shared;
	uint8_t *data; /* UROCE_ABI_RING_BYTES, shared */
	uint64_t written;
	uint64_t read_seen; /* the reader was there when it was looked at last */
};

struct link_ring_reader {
	struct uroce_abi_ring *shared;
	uint8_t *data;
	uint64_t read;
	uint64_t written_seen;
	uint64_t frame_bytes; /* of the frame that link_ring_next() gave */
};

/* Go on where the last writer, or reader, of this memory left off. */
void link_ring_open_writer(struct link_ring_writer *ring, struct uroce_abi_ring *shared,
			   uint8_t *data);
void link_ring_open_reader(struct link_ring_reader *ring, struct uroce_abi_ring *shared,
			   uint8_t *data);

/*
 * Append the pieces, frame->bytes in all (1 to LINK_MAX_BYTES), as one frame.  Anything but
 * LINK_RING_OK has written nothing.
 */
enum link_ring_result link_ring_write(struct link_ring_writer *ring,
				      const struct uroce_abi_frame *frame,
				      const struct iovec *pieces, unsigned int count);

/* Would a frame of so many bytes find room? */
bool link_ring_has_room(struct link_ring_writer *ring, uint32_t bytes);

/*
 * The oldest frame: its head is copied, *bytes points to the bytes in the ring, which stay there
 * until link_ring_release().  They may change under the reader if the writer does not keep to the
 * rules.
 */
enum link_ring_result link_ring_next(struct link_ring_reader *ring, struct uroce_abi_frame *frame,
				     uint8_t **bytes);
/*
 * Has anything been written that has not been released?  A broken ring has nothing.  Any thread may
 * ask.
 */
bool link_ring_has_more(const struct link_ring_reader *ring);
/* Tell the writer that the ring is broken: it finds out when it looks for room, or asks. */
void link_ring_give_up(struct link_ring_reader *ring);
bool link_ring_is_given_up(const struct link_ring_writer *ring);
/* Empty the ring and forget that it was broken; a writer has to open it after that. */
void link_ring_renew(struct link_ring_reader *ring);
/* The writer may have the room of the frame that link_ring_next() gave last. */
void link_ring_release(struct link_ring_reader *ring);

#endif
